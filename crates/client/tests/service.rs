//! The client before a real service, `privet serve` and `privet dealer` of the environment that `make setup` makes.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use privet_client::{Client, ClientBuilder, Credentials, Error, Fss, Prediction, Suite, Tensor, Truncation};
use serde::Deserialize;
use serde_json::Value;

/// What the network says of an image in the clear; `digit.py` made it.
#[derive(Deserialize)]
struct Digit {
    image: Vec<f32>,
    logits: Vec<f64>,
}

impl Digit {
    fn read() -> Self {
        serde_json::from_str(include_str!("digit.json")).expect("a digit")
    }

    fn input(&self) -> [Tensor; 1] {
        [Tensor::new([1, 1, 8, 8], self.image.clone()).expect("64 pixels")]
    }

    /// Fails unless these are the logits up to rounding, and not the very ones, which no fixed-point number is.
    fn check(&self, found: &[f64]) {
        assert_eq!(found.len(), 10);
        assert!(found.iter().zip(&self.logits).all(|(a, b)| (a - b).abs() < 0.1), "{found:?} {:?}", self.logits);
        assert_ne!(found, self.logits);
    }
}

/// A command that runs beside the test and ends with it.
struct Running {
    process: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Running {
    fn start(words: &[&str]) -> Self {
        let mut process = privet(words).stdout(Stdio::piped()).spawn().expect("it was found");
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        Self { process, lines }
    }

    fn next(&mut self) -> Value {
        let line = self.lines.next().expect("the command goes on").expect("it prints text");
        serde_json::from_str(&line).expect("it prints JSON")
    }

    fn address(&mut self) -> String {
        self.next()["address"].as_str().expect("it says where it listens").to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The command `privet` beside the interpreter that the extension module is built for.
fn privet(words: &[&str]) -> Command {
    let python = std::env::var_os("PYO3_PYTHON").map(PathBuf::from);
    let python = python.unwrap_or_else(|| root().join(".venv/bin/python"));
    let program = python.with_file_name("privet");
    assert!(program.exists(), "there is no {}: run `make setup`, or set PYO3_PYTHON", program.display());
    let mut command = Command::new(program);
    command.args(words).arg("--json");
    command
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A service of the digits network with a dealer, its keys, and a folder for clients.
struct Scene {
    folder: tempfile::TempDir,
    keys: String,
    url: String,
    _dealer: Running,
    _service: Running,
}

impl Scene {
    /// With more options of the service.
    fn start(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
        let keys = place("keys");
        assert!(privet(&["keys", &keys]).stdout(Stdio::null()).status().expect("it was found").success());
        let mut dealer = Running::start(&["dealer", "--keys", &keys, "--listen", "127.0.0.1:0"]);
        let dealt_at = dealer.address();
        let model = root().join("zoo/models/digits-cnn.onnx");
        let (model, state) = (model.to_str().expect("text"), place("service"));
        let mut words =
            vec!["serve", model, "--name", "digits", "--keys", &keys, "--state", &state, "--dealer", &dealt_at];
        words.extend(["--listen", "127.0.0.1:0", "--input-range", "0", "1", "--cores", "1"]);
        words.extend(more);
        let mut service = Running::start(&words);
        let url = format!("https://{}", service.address());
        service.next(); // the models are loaded
        Self { folder, keys, url, _dealer: dealer, _service: service }
    }

    fn builder(&self) -> ClientBuilder {
        let credentials = Credentials::from_folder(&self.keys).expect("keys");
        Client::builder(&self.url, credentials, self.state()).patience(Duration::from_secs(30))
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("client")
    }

    /// What the program prints for a digit.
    fn program(&self, suite: &str, digit: &Digit) -> Vec<f64> {
        let mut process = Command::new(env!("CARGO_BIN_EXE_privet-client"))
            .args([&self.url, &self.keys])
            .arg(self.state())
            .args(["digits", suite])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let numbers: Vec<String> = digit.image.iter().map(f32::to_string).collect();
        process.stdin.take().expect("piped").write_all(numbers.join(" ").as_bytes()).expect("it reads");
        let done = process.wait_with_output().expect("it ends");
        assert!(done.status.success());
        let text = String::from_utf8(done.stdout).expect("text");
        text.lines().map(|line| line.strip_prefix("logits ").expect("a name").parse().expect("a number")).collect()
    }
}

fn logits(prediction: &Prediction) -> &[f64] {
    let [(name, tensor)] = &prediction.outputs[..] else { panic!("{prediction:?}") };
    assert_eq!((name.as_str(), tensor.shape()), ("logits", &[1, 10][..]));
    tensor.data()
}

#[test]
fn a_rust_client_asks_a_service_in_each_suite() {
    let (scene, digit) = (Scene::start(&[]), Digit::read());
    let input = digit.input();

    let first = scene.program("gmw", &digit);
    digit.check(&first);

    let client = scene.builder().build().unwrap();
    assert_eq!(client.models().unwrap(), ["digits"]);
    let model = client.model("digits").unwrap();
    assert_eq!((model.version(), model.batch()), (1, 1));
    assert_eq!(model.inputs().collect::<Vec<_>>(), [("input", &[1, 1, 8, 8][..])]);
    assert_eq!(model.outputs().collect::<Vec<_>>(), [("logits", &[1, 10][..])]);
    assert!(model.caveat().is_some());

    // Without material, and on material that another client of the certificate finds: exact truncations give the same numbers.
    let unprepared = model.predictor(Suite::gmw().unprepared()).unwrap();
    let found = unprepared.infer(&input).unwrap();
    assert_eq!((logits(&found), &found.material), (&first[..], &None));
    assert!(matches!(unprepared.prepare(), Err(Error::Misuse(_))));
    let gmw = model.predictor(Suite::gmw()).unwrap();
    let id = gmw.prepare().unwrap().id().to_owned();
    let other = scene.builder().build().unwrap().model("digits").unwrap().predictor(Suite::gmw()).unwrap();
    let ready = other.prepared().unwrap();
    assert_eq!(ready.iter().map(|notice| notice.id()).collect::<Vec<_>>(), [&id]);
    assert!(model.predictor(Suite::fss()).unwrap().prepared().unwrap().is_empty());
    let on_it = ready.into_iter().next().unwrap().infer(&input).unwrap();
    assert_eq!(logits(&on_it), first);
    assert!(on_it.material.is_some());
    assert!(on_it.online.bytes_sent < found.online.bytes_sent);
    assert!(other.prepared().unwrap().is_empty());

    for suite in [Suite::fss(), Suite::fss_malicious()] {
        let predictor = model.predictor(suite).unwrap();
        assert_eq!(predictor.weaknesses().iter().map(|weakness| weakness.name).collect::<Vec<_>>(), ["dealer"]);
        assert_eq!(logits(&predictor.infer(&input).unwrap()), first);
    }

    // One predictor serves several threads.
    std::thread::scope(|threads| {
        let asked = [(), ()].map(|()| threads.spawn(|| gmw.infer(&input).unwrap()));
        let found = asked.map(|thread| thread.join().unwrap());
        assert!(found.iter().all(|prediction| logits(prediction) == first));
        assert_ne!(found[0].material, found[1].material);
    });

    refusals(&scene, &client);
}

/// As behind a proxy that starts anew.
#[test]
fn a_worker_that_refuses_connections_for_seconds_is_reached_then() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (number, digit) = (port.to_string(), Digit::read());
    let scene = Scene::start(&["--data-host", "127.0.0.1", "--advertise", "127.0.0.2", "--first-port", &number]);
    let start = Instant::now();
    thread::spawn(move || {
        thread::sleep(Duration::from_secs(3));
        for near in TcpListener::bind(("127.0.0.2", port)).unwrap().incoming() {
            let (near, far) = (near.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap());
            let back = (far.try_clone().unwrap(), near.try_clone().unwrap());
            for (mut from, mut to) in [(near, far), back] {
                thread::spawn(move || std::io::copy(&mut from, &mut to));
            }
        }
    });
    digit.check(&scene.program("gmw", &digit));
    assert!(start.elapsed() > Duration::from_secs(3));
}

fn refusals(scene: &Scene, client: &Client) {
    let model = client.model("digits").unwrap();
    let predictor = model.predictor(Suite::gmw()).unwrap();
    let wrong = Tensor::new([1, 64], [0f32; 64]).unwrap();
    assert!(matches!(predictor.infer(&[wrong]), Err(Error::Input(_))));
    assert!(matches!(client.model("digit"), Err(Error::Misuse(text)) if text.contains("no model digit")));
    assert!(matches!(client.model_version("digits", 2), Err(Error::Misuse(text)) if text.contains("it has 1")));

    // The server's policy: truncations are exact.
    let weak = model.predictor(Fss { truncation: Truncation::OneBit }).unwrap();
    assert!(matches!(weak.infer(&[Tensor::new([1, 1, 8, 8], [0f32; 64]).unwrap()]), Err(Error::NotAccepted(_))));
    let small = scene.builder().memory(1 << 20).build().unwrap().model("digits").unwrap();
    assert!(matches!(small.predictor(Suite::gmw()), Err(Error::Misuse(text)) if text.contains("raise the limit")));

    // The service's certificate must carry the name that the client knows it by. Clients with the right name are above.
    let asked = scene.builder().server_name("other.example.org").build().unwrap().models();
    assert!(matches!(asked, Err(Error::PeerMisbehaved(text)) if text.contains("the certificate of")));
    // Nor is it of any authority but the client's; and the service lets in no client of another.
    let (foreign, own) = (authority(), |name: &str| std::fs::read(Path::new(&scene.keys).join(name)).unwrap());
    let [certificate, key, trusted] = [own("client.pem"), own("client.key"), foreign.0.clone()];
    let asks = |certificate: &[u8], key: &[u8], trusted: &[u8]| {
        let credentials = Credentials::from_pem(certificate, key, trusted).unwrap();
        Client::builder(&scene.url, credentials, scene.state())
            .patience(Duration::from_secs(30))
            .build()
            .unwrap()
            .models()
    };
    assert!(matches!(asks(&certificate, &key, &trusted), Err(Error::PeerMisbehaved(_))));
    let refused = asks(&foreign.1, &foreign.2, &own("ca.pem"));
    assert!(matches!(&refused, Err(Error::NotAccepted(text)) if text.contains("UnknownCA")), "{refused:?}");
    assert_eq!(asks(&certificate, &key, &own("ca.pem")).unwrap(), ["digits"]);

    // Nobody listens there.
    let away = Client::builder("https://127.0.0.1:1", Credentials::from_folder(&scene.keys).unwrap(), scene.state());
    let away = away.patience(Duration::ZERO).build().unwrap().models();
    assert!(matches!(away, Err(Error::Link(text)) if text.contains("https://127.0.0.1:1 cannot be reached")));
}

/// Another authority's certificate, and a client's with its key that it issued, in PEM.
fn authority() -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
    let (root_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut root = CertificateParams::new([]).unwrap();
    root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let trusted = root.self_signed(&root_key).unwrap().pem();
    let mut client = CertificateParams::new([]).unwrap();
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = client.signed_by(&key, &Issuer::new(root, root_key)).unwrap().pem();
    (trusted.into(), certificate.into(), key.serialize_pem().into())
}
