//! `maskwright serve`: models behind HTTP APIs.

use std::{
    io::{IsTerminal, Write},
    net::IpAddr,
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use clap::Args;

use super::{
    args::{Device, SpellingArgs},
    failure::Failure,
    run::load_on,
};
use crate::{
    Limits,
    backend::{Local, Service, ServiceOptions},
    chat::ChatFormat,
    config::{Config, ServeSettings, Settings},
    model::hub::{DEFAULT_MODEL, ModelName},
    server::{self, Access, Served, ServerOptions, State},
};

/// Where settings are looked for when nothing says where.
const FILE: &str = "maskwright.toml";
const HOST: &str = "127.0.0.1";
const PORT: u16 = 8080;

/// Flags, each stronger than `MASKWRIGHT_…` in the environment, and that than the settings file.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Models: paths of .gguf files, `hf:owner/repo[:file]`, or names of the catalogue (default: smollm2).
    models: Vec<String>,
    /// Address to bind to. Anything but this machine's own makes the server reachable for others.
    #[arg(long, value_name = "ADDRESS")]
    host: Option<String>,
    /// Port; 0 takes any that is free.
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Key that callers must show; better given in MASKWRIGHT_API_KEY, since others can see a command line.
    #[arg(long, value_name = "KEY")]
    api_key: Option<String>,
    /// A name by which the server may be called beside those of this machine; may be repeated. `*` is any.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// An origin whose pages may call the server, such as http://localhost:3000; may be repeated.
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// Replies that are generated at a time.
    #[arg(long, value_name = "N")]
    sequences: Option<usize>,
    /// Requests that wait beside those; more are refused with 429.
    #[arg(long, value_name = "N")]
    queue: Option<usize>,
    /// Longest reply where a request says nothing, in tokens.
    #[arg(long, value_name = "N")]
    max_tokens: Option<usize>,
    /// Longest time to compile a grammar, in seconds.
    #[arg(long, value_name = "S")]
    compile_seconds: Option<u64>,
    /// Longest time for a request, in seconds.
    #[arg(long, value_name = "S")]
    request_seconds: Option<u64>,
    /// Largest body of a request, in bytes.
    #[arg(long, value_name = "N")]
    body_bytes: Option<usize>,
    /// Settings file (default: maskwright.toml in this folder, where there is one).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    spelling: SpellingArgs,
    /// Use only what is in the cache.
    #[arg(long)]
    offline: bool,
    /// Threads; 0 is as many as pay.
    #[arg(long, value_name = "N", default_value_t = 0)]
    threads: usize,
    /// Where to run: auto, cpu, cuda, cuda:N or metal.
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: Device,
}

pub(super) fn serve(args: &ServeArgs) -> Result<ExitCode, Failure> {
    let config = Config::from_env();
    log(&config);
    let settings = settings(args, &config)?;
    let Bound { host, port } = bound(args, &config, &settings)?;
    let access = access(args, &config, &settings, host);
    if !host.is_loopback() && access.api_key.is_none() {
        writeln!(
            std::io::stderr(),
            "warning: bound to {host} without --api-key: whoever reaches this machine may use it"
        )?;
    }
    let served = load(args, &config, &settings)?;
    let options = ServerOptions {
        spelling: args.spelling.options(),
        max_tokens: args.max_tokens.or(settings.max_tokens),
        body_bytes: args.body_bytes.or(settings.body_bytes).unwrap_or(ServerOptions::default().body_bytes),
        ..ServerOptions::default()
    };
    let state = State::new(served, access, options);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind((host, port))
            .await
            .map_err(|error| Failure::runtime(format!("{host}:{port}: {error}")))?;
        writeln!(std::io::stderr(), "listening on http://{}", listener.local_addr()?)?;
        server::serve(listener, state, stopped()).await?;
        Ok::<_, Failure>(())
    })?;
    // A reply that doesn't end must not keep the process: by now, all have.
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(ExitCode::SUCCESS)
}

/// What is logged, on stderr: requests and failures, never what they say.
fn log(config: &Config) {
    let words = config.log.as_deref().unwrap_or("warn,maskwright=info");
    let filter = tracing_subscriber::EnvFilter::builder().parse_lossy(words);
    // One that was set already, by a test, stays.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .try_init();
}

fn settings(args: &ServeArgs, config: &Config) -> Result<ServeSettings, Failure> {
    let named = args.config.clone().or_else(|| config.file.clone());
    let path = named.or_else(|| Some(PathBuf::from(FILE)).filter(|path| path.is_file()));
    let settings = path.map(|path| Settings::read(&path)).transpose().map_err(Failure::usage)?;
    Ok(settings.unwrap_or_default().serve)
}

struct Bound {
    host: IpAddr,
    port: u16,
}

fn bound(args: &ServeArgs, config: &Config, settings: &ServeSettings) -> Result<Bound, Failure> {
    let host = args.host.as_ref().or(config.host.as_ref()).or(settings.host.as_ref());
    let host = host.map_or(HOST, String::as_str);
    let address = if host.eq_ignore_ascii_case("localhost") { HOST } else { host };
    let host = address.trim_matches(['[', ']']).parse().map_err(|_| {
        Failure::usage(format!("--host: {host:?} isn't an address, such as 127.0.0.1 or 0.0.0.0"))
    })?;
    let from_environment = config
        .port
        .as_ref()
        .map(|port| {
            port.parse().map_err(|_| Failure::usage(format!("MASKWRIGHT_PORT: {port:?} isn't a port")))
        })
        .transpose()?;
    Ok(Bound { host, port: args.port.or(from_environment).or(settings.port).unwrap_or(PORT) })
}

fn access(args: &ServeArgs, config: &Config, settings: &ServeSettings, host: IpAddr) -> Access {
    let both = |flags: &[String], file: &[String]| flags.iter().chain(file).cloned().collect::<Vec<_>>();
    let extra = both(&args.allow_host, &settings.allow_host);
    // Bound to more than this machine, the server is called by names that it can't know.
    let any = extra.iter().any(|name| name == "*") || (!host.is_loopback() && extra.is_empty());
    let hosts = (!any).then(|| Access::loopback_hosts().into_iter().chain(extra).collect());
    Access {
        api_key: args.api_key.clone().or_else(|| config.api_key.clone()).or_else(|| settings.api_key.clone()),
        hosts,
        origins: both(&args.allow_origin, &settings.allow_origin),
    }
}

fn load(args: &ServeArgs, config: &Config, settings: &ServeSettings) -> Result<Vec<Served>, Failure> {
    let mut names = if args.models.is_empty() { settings.models.clone() } else { args.models.clone() };
    if names.is_empty() {
        names.push(DEFAULT_MODEL.to_owned());
    }
    let seconds = |flag: Option<u64>, file: Option<u64>, default: Duration| {
        flag.or(file).map_or(default, Duration::from_secs)
    };
    let default = ServiceOptions::default();
    let options = ServiceOptions {
        sequences: args.sequences.or(settings.sequences).unwrap_or(default.sequences).max(1),
        queue: args.queue.or(settings.queue).unwrap_or(default.queue),
        compile_seconds: seconds(args.compile_seconds, settings.compile_seconds, default.compile_seconds),
        request_seconds: seconds(args.request_seconds, settings.request_seconds, default.request_seconds),
        ..default
    };
    let mut served: Vec<Served> = Vec::new();
    for name in names {
        let parsed = ModelName::parse(&name).map_err(Failure::model)?;
        let shown = shown(&parsed);
        if served.iter().any(|other| other.name() == shown) {
            return Err(Failure::usage(format!("two models are called {shown:?}")));
        }
        let model = load_on(&parsed, args.offline, args.threads, args.device).map_err(Failure::model)?;
        let card = model.card().clone();
        let local = Local::with_options(model, Limits::default(), config.compiler_options())?;
        let format = local.format().map_or("none, so no tools", ChatFormat::name);
        writeln!(
            std::io::stderr(),
            "model {shown}: {}, on {}, chat format {format}, context {} tokens",
            card.architecture,
            card.device,
            card.context
        )?;
        served.push(Served::new(shown, Service::start(local, options)?, None));
    }
    Ok(served)
}

/// What callers call a model: no path of this machine.
fn shown(name: &ModelName) -> String {
    match name {
        ModelName::Path(path) => {
            path.file_stem().map_or_else(|| "model".to_owned(), |stem| stem.to_string_lossy().into_owned())
        }
        ModelName::Hub { repo, .. } => repo.clone(),
        name => name.to_string(),
    }
}

/// Done when the process is asked to stop; asked twice, it stops at once.
async fn stopped() {
    asked().await;
    // Nobody is left to tell when stderr is closed.
    let _ = writeln!(std::io::stderr(), "finishing what has begun; once more stops at once");
    tokio::spawn(async {
        asked().await;
        std::process::exit(130);
    });
}

#[cfg(unix)]
async fn asked() {
    use tokio::signal::unix::{SignalKind, signal};
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return std::future::pending().await };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}

#[cfg(not(unix))]
async fn asked() {
    // Without a handler there is nothing to wait for.
    let _ = tokio::signal::ctrl_c().await;
}
