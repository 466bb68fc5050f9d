//! Reads GGUF files: metadata, the list of tensors, and one tensor at a time.
//!
//! Format: <https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>, versions 2 and 3, little-endian. The reader
//! is our own because candle's divides by the file's alignment unchecked and asks the system for its position at
//! every string. Whatever a file says, no more memory is asked for than its own size and a bound on what arrays
//! take.

use std::{
    borrow::Cow,
    collections::HashMap,
    fs::File,
    io::{self, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use candle_core::{
    Device,
    quantized::{GgmlDType, QStorage, QTensor},
};

use crate::{
    model::ModelError,
    vocab::{GgufMetadata, GgufValue},
};

const MAGIC: [u8; 4] = *b"GGUF";
const DEFAULT_ALIGNMENT: u64 = 32;
const MAX_DIMENSIONS: u32 = 4;
/// Arrays of arrays nest no deeper than this; real files don't nest at all.
const MAX_NESTING: usize = 4;
/// Elements of all arrays together. An element takes 32 bytes of memory, whatever it takes in the file; the largest
/// vocabularies come to about two million.
const MAX_ELEMENTS: u64 = 1 << 24;

/// Reads only the metadata of a GGUF file: what a [`Vocabulary`](crate::Vocabulary) is made from.
///
/// # Errors
/// [`ModelError::Load`] where the file can't be read or isn't a GGUF file.
///
/// ```no_run
/// let metadata = maskwright::model::candle::read_metadata("model.gguf".as_ref())?;
/// println!("{:?}", metadata.get("general.architecture"));
/// # Ok::<(), maskwright::model::ModelError>(())
/// ```
pub fn read_metadata(path: &Path) -> Result<GgufMetadata, ModelError> {
    Ok(GgufFile::open(path)?.metadata)
}

/// An open GGUF file.
#[derive(Debug)]
pub(super) struct GgufFile {
    path: PathBuf,
    file: File,
    size: u64,
    data_start: u64,
    tensors: HashMap<String, TensorInfo>,
    /// Its metadata, by key.
    pub(super) metadata: GgufMetadata,
}

#[derive(Debug)]
struct TensorInfo {
    kind: GgmlDType,
    /// Slowest dimension first: `[rows, columns]` for a matrix.
    shape: Vec<usize>,
    offset: u64,
    bytes: usize,
}

impl GgufFile {
    /// Opens a file and reads all but the tensors' data.
    pub(super) fn open(path: &Path) -> Result<Self, ModelError> {
        let fail = |reason: String| ModelError::Load { path: path.display().to_string(), reason };
        let file = File::open(path).map_err(|e| fail(e.to_string()))?;
        let size = file.metadata().map_err(|e| fail(e.to_string()))?.len();
        let header = Header::read(BufReader::with_capacity(1 << 18, &file), size).map_err(fail)?;
        Ok(Self {
            path: path.to_owned(),
            size,
            data_start: header.data_start,
            tensors: header.tensors,
            metadata: header.metadata,
            file,
        })
    }

    /// A `Load` error about this file.
    pub(super) fn fail(&self, reason: impl Into<String>) -> ModelError {
        ModelError::Load { path: self.path.display().to_string(), reason: reason.into() }
    }

    /// Whether there is such a tensor.
    pub(super) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Rows and columns of a matrix; a vector has one row.
    pub(super) fn shape(&self, name: &str) -> Result<(usize, usize), ModelError> {
        let info = self.info(name)?;
        match info.shape[..] {
            [columns] => Ok((1, columns)),
            [rows, columns] => Ok((rows, columns)),
            _ => {
                Err(self.fail(format!("tensor {name} has {} dimensions, expected 1 or 2", info.shape.len())))
            }
        }
    }

    /// Reads a matrix as it is stored.
    pub(super) fn tensor(&self, name: &str, device: &Device) -> Result<QTensor, ModelError> {
        let info = self.info(name)?;
        let bytes = self.bytes(name, info)?;
        QStorage::from_data(Cow::Owned(bytes), device, info.kind)
            .and_then(|storage| QTensor::new(storage, info.shape.clone()))
            .map_err(|e| self.fail(format!("tensor {name}: {e}")))
    }

    /// Reads a vector of `len` numbers, as floats.
    pub(super) fn vector(&self, name: &str, len: usize) -> Result<Vec<f32>, ModelError> {
        if self.shape(name)? != (1, len) {
            let given = &self.info(name)?.shape;
            return Err(self.fail(format!("tensor {name} has shape {given:?}, expected [{len}]")));
        }
        self.tensor(name, &Device::Cpu)?
            .dequantize(&Device::Cpu)
            .and_then(|values| values.to_vec1::<f32>())
            .map_err(|e| self.fail(format!("tensor {name}: {e}")))
    }

    fn info(&self, name: &str) -> Result<&TensorInfo, ModelError> {
        self.tensors.get(name).ok_or_else(|| self.fail(format!("tensor {name} is missing")))
    }

    fn bytes(&self, name: &str, info: &TensorInfo) -> Result<Vec<u8>, ModelError> {
        let start = self.data_start.saturating_add(info.offset);
        if start.saturating_add(info.bytes as u64) > self.size {
            return Err(self.fail(format!(
                "tensor {name} ends past the end of the file (needs {} bytes at {start}, the file has {})",
                info.bytes, self.size
            )));
        }
        let mut bytes = vec![0; info.bytes];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(start))
            .and_then(|_| file.read_exact(&mut bytes))
            .map_err(|e| self.fail(format!("tensor {name}: {e}")))?;
        Ok(bytes)
    }
}

/// What stands before the tensors' data.
#[derive(Debug)]
struct Header {
    metadata: GgufMetadata,
    tensors: HashMap<String, TensorInfo>,
    data_start: u64,
}

impl Header {
    fn read(reader: impl Read, size: u64) -> Result<Self, String> {
        let mut source = Source { reader, at: 0, size, elements: 0 };
        if source.array::<4>().map_err(|_| "not a GGUF file: it is shorter than four bytes".to_owned())?
            != MAGIC
        {
            return Err("not a GGUF file: it doesn't start with \"GGUF\"".into());
        }
        let version = source.u32()?;
        if !(2..=3).contains(&version) {
            return Err(format!("GGUF version {version} is not supported (2 and 3 are, little-endian)"));
        }
        let tensor_count = source.u64()?;
        let entry_count = source.u64()?;
        // The smallest entry takes 13 bytes, the smallest tensor description 24.
        source.expect(entry_count.saturating_mul(13).saturating_add(tensor_count.saturating_mul(24)))?;

        let mut metadata = GgufMetadata::new();
        for _ in 0..entry_count {
            let key = source.string()?;
            let kind = source.u32()?;
            let value = source.value(kind, 0).map_err(|e| format!("metadata {key}: {e}"))?;
            metadata.insert(key, value);
        }
        let mut tensors = HashMap::new();
        for _ in 0..tensor_count {
            let name = source.string()?;
            let info = source.tensor_info().map_err(|e| format!("tensor {name}: {e}"))?;
            tensors.insert(name, info);
        }
        let alignment = match metadata.get("general.alignment") {
            None => DEFAULT_ALIGNMENT,
            Some(GgufValue::Uint(n)) if n.is_power_of_two() && *n <= 1 << 20 => *n,
            Some(other) => return Err(format!("general.alignment is {other:?}, expected a power of two")),
        };
        Ok(Self { metadata, tensors, data_start: source.at.next_multiple_of(alignment) })
    }
}

/// A reader that knows how much of the file is left.
struct Source<R> {
    reader: R,
    at: u64,
    size: u64,
    /// Of arrays, so far.
    elements: u64,
}

impl<R: Read> Source<R> {
    fn expect(&self, bytes: u64) -> Result<(), String> {
        let left = self.size.saturating_sub(self.at);
        if bytes > left { Err(format!("{bytes} bytes expected at {}, {left} left", self.at)) } else { Ok(()) }
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), String> {
        self.reader.read_exact(bytes).map_err(|e| match e.kind() {
            io::ErrorKind::UnexpectedEof => format!("the file ends in the middle, after {} bytes", self.size),
            _ => e.to_string(),
        })?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, String> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, String> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn string(&mut self) -> Result<String, String> {
        let length = self.u64()?;
        self.expect(length)?;
        let mut bytes = vec![0; usize::try_from(length).map_err(|e| e.to_string())?];
        self.fill(&mut bytes)?;
        // A few writers end strings with a zero byte, and some put bytes that aren't UTF-8 into descriptions.
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn value(&mut self, kind: u32, depth: usize) -> Result<GgufValue, String> {
        Ok(match kind {
            0 => GgufValue::Uint(u8::from_le_bytes(self.array()?).into()),
            1 => GgufValue::Int(i8::from_le_bytes(self.array()?).into()),
            2 => GgufValue::Uint(u16::from_le_bytes(self.array()?).into()),
            3 => GgufValue::Int(i16::from_le_bytes(self.array()?).into()),
            4 => GgufValue::Uint(self.u32()?.into()),
            5 => GgufValue::Int(i32::from_le_bytes(self.array()?).into()),
            6 => GgufValue::Float(f32::from_le_bytes(self.array()?).into()),
            7 => match self.array()? {
                [0_u8] => GgufValue::Bool(false),
                [1] => GgufValue::Bool(true),
                [other] => return Err(format!("a truth value is {other}")),
            },
            8 => GgufValue::String(self.string()?),
            9 => GgufValue::Array(self.list(depth)?),
            10 => GgufValue::Uint(self.u64()?),
            11 => GgufValue::Int(i64::from_le_bytes(self.array()?)),
            12 => GgufValue::Float(f64::from_le_bytes(self.array()?)),
            other => return Err(format!("unknown kind of value {other}")),
        })
    }

    fn list(&mut self, depth: usize) -> Result<Vec<GgufValue>, String> {
        if depth >= MAX_NESTING {
            return Err(format!("arrays nest deeper than {MAX_NESTING}"));
        }
        let kind = self.u32()?;
        let length = self.u64()?;
        let smallest = match kind {
            0 | 1 | 7 => 1,
            2 | 3 => 2,
            4..=6 => 4,
            9 => 12,
            _ => 8,
        };
        self.expect(length.saturating_mul(smallest))?;
        self.elements = self.elements.saturating_add(length);
        if self.elements > MAX_ELEMENTS {
            return Err(format!("arrays of {} elements, at most {MAX_ELEMENTS} are read", self.elements));
        }
        let mut list = Vec::with_capacity(usize::try_from(length).map_err(|e| e.to_string())?);
        for _ in 0..length {
            list.push(self.value(kind, depth + 1)?);
        }
        Ok(list)
    }

    fn tensor_info(&mut self) -> Result<TensorInfo, String> {
        let dimensions = self.u32()?;
        if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
            return Err(format!("{dimensions} dimensions, expected 1 to {MAX_DIMENSIONS}"));
        }
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            shape.push(usize::try_from(self.u64()?).map_err(|e| e.to_string())?);
        }
        shape.reverse();
        let kind = kind_of(self.u32()?)?;
        let offset = self.u64()?;
        let columns = shape.last().copied().unwrap_or(0);
        let elements = shape.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        let bytes = elements.and_then(|n| (n / kind.block_size()).checked_mul(kind.type_size()));
        match bytes {
            Some(bytes) if bytes > 0 && columns.is_multiple_of(kind.block_size()) => {
                Ok(TensorInfo { kind, shape, offset, bytes })
            }
            _ => Err(format!("shape {shape:?} can't be one of {kind:?} numbers")),
        }
    }
}

/// The storage kind of a GGML type number. Numbers left out are of kinds candle has no code for.
fn kind_of(number: u32) -> Result<GgmlDType, String> {
    Ok(match number {
        0 => GgmlDType::F32,
        1 => GgmlDType::F16,
        2 => GgmlDType::Q4_0,
        3 => GgmlDType::Q4_1,
        6 => GgmlDType::Q5_0,
        7 => GgmlDType::Q5_1,
        8 => GgmlDType::Q8_0,
        10 => GgmlDType::Q2K,
        11 => GgmlDType::Q3K,
        12 => GgmlDType::Q4K,
        13 => GgmlDType::Q5K,
        14 => GgmlDType::Q6K,
        30 => GgmlDType::BF16,
        other => return Err(format!("its numbers are of GGML type {other}, which is not supported")),
    })
}
