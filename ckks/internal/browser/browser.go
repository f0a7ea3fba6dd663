// Package browser is a client of scenario 1 that asks for one sample at a time, as a page in a browser does. Key and data
// stay with it; what it sends are public evaluation keys and ciphertexts (docs/reference/protocols/ckks.md).
package browser

import (
	"fmt"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/session"
)

// Client has a session with a server.
type Client struct{ *session.Client }

// Facts are what a person may want to know before anything is sent.
type Facts struct {
	Model string `json:"model"`
	// Hash is the SHA-256 of the program's public half, Size the number of elements of a sample, Magnitude their bound.
	Hash      string       `json:"program_hash"`
	Size      int          `json:"size"`
	Magnitude float64      `json:"magnitude"`
	Plan      plan.Summary `json:"plan"`
	// Statistical says how results are flooded.
	Statistical bool `json:"statistical"`
}

// Open greets the server on a link, gets its program, which must have the hash unless that is empty, and plans it.
//
// A program of several inputs or outputs is refused, and unless it is accepted, a server that floods its results lightly.
func Open(link *channel.Channel, hash string, acceptLight bool) (*Client, Facts, error) {
	client, err := session.Open(link, hash)
	if err != nil {
		return nil, Facts{}, err
	}
	if !client.Terms.Statistical && !acceptLight {
		return nil, Facts{}, client.RefuseLight("accept that")
	}
	program := client.Program
	if len(program.Inputs) != 1 || len(program.Outputs) != 1 {
		return nil, Facts{}, fmt.Errorf("%s has %d inputs and %d outputs: only one of each is possible here",
			program.Model, len(program.Inputs), len(program.Outputs))
	}
	return &Client{client}, Facts{
		Model: program.Model, Hash: program.Hash, Size: client.Network.Nodes[0].Size,
		Magnitude: program.Inputs[0].Magnitude, Plan: client.Plan.Summary(), Statistical: client.Terms.Statistical,
	}, nil
}

// Predict encrypts a sample, `Facts.Size` real numbers, and decrypts what the server computes of it. The other samples of a
// program's batch are zero.
func (c *Client) Predict(sample []float64) ([]float64, session.Cost, error) {
	samples := make([][]float64, c.Program.Batch)
	samples[0] = sample
	for i := range samples[1:] {
		samples[1+i] = make([]float64, len(sample))
	}
	outputs, cost, err := c.Infer([][][]float64{samples})
	if err != nil {
		return nil, cost, err
	}
	return outputs[0][0], cost, nil
}
