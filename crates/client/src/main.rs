//! Asks a service for a private prediction: `privet-client https://HOST:PORT KEYS STATE MODEL [SUITE]`, with the numbers of one
//! input on standard input. Prints the outputs, one a line.
//!
//! KEYS is a folder that `privet keys` made, STATE one that keeps material, SUITE one of those below. The program needs nothing
//! besides, and is an example of the library at once.

use std::error::Error;
use std::io::read_to_string;
use std::process::ExitCode;

use privet_client::{Client, Credentials, Suite, Tensor};

fn main() -> ExitCode {
    match predict() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // It may name what the service called so.
            eprintln!("{}", error.to_string().replace(|letter: char| letter.is_control() && letter != '\n', ""));
            ExitCode::FAILURE
        }
    }
}

fn predict() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, keys, state, model, rest @ ..] = &words[..] else {
        return Err("usage: privet-client https://HOST:PORT KEYS STATE MODEL [gmw|fss|unprepared] <NUMBERS".into());
    };
    let suite = match rest.first().map(String::as_str) {
        None | Some("gmw") => Suite::gmw(),
        Some("fss") => Suite::fss(),
        Some("unprepared") => Suite::gmw().unprepared(),
        Some(other) => return Err(format!("suite {other} is unknown: gmw, fss and unprepared are possible").into()),
    };

    let client = Client::builder(url, Credentials::from_folder(keys)?, state).build()?;
    let model = client.model(model)?;
    let predictor = model.predictor(suite)?;
    eprintln!("program {} in {}", model.program_hash(), predictor.label());

    let (_, shape) = model.inputs().next().ok_or("the model has no input")?;
    let numbers: Vec<f32> =
        read_to_string(std::io::stdin())?.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    let prediction = predictor.infer(&[Tensor::new(shape, numbers)?])?;
    for (name, tensor) in prediction.outputs {
        for number in tensor.data() {
            // The service called it so.
            println!("{} {number}", name.escape_debug());
        }
    }
    eprintln!("{} bytes sent, {} received online", prediction.online.bytes_sent, prediction.online.bytes_received);
    Ok(())
}
