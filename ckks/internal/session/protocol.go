// Package session is what client and server say to each other (docs/reference/protocols/ckks.md). In scenario 1 the client encrypts
// its data, the server evaluates a plaintext model on ciphertexts, the client decrypts. In scenario 2 the server hands out
// its model encrypted, the client evaluates it on its data, and the server decrypts a masked result.
package session

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/params"
	"privet/ckks/internal/wire"
)

const (
	maxRequest = 4096
	version    = 1
)

var greeting = binary.LittleEndian.AppendUint16([]byte("PRIVET"), version)

// request is what a client asks, as JSON.
type request struct {
	// Request is "describe" or "bye", in scenario 1 "keys" or "infer", in scenario 2 "model" or "decrypt", and "run" and
	// "refresh" where values are refreshed.
	Request  string `json:"request"`
	Scenario string `json:"scenario,omitempty"`
	Program  string `json:"program,omitempty"`
	// Parameters and Batch are what the client's plan says; the server's must say the same.
	Parameters *params.Set `json:"parameters,omitempty"`
	Batch      int         `json:"batch,omitempty"`
	// Layers asks for the model layer by layer in each run, instead of all of it before.
	Layers bool `json:"layers,omitempty"`
}

// Greet exchanges greetings, which say the version.
func Greet(c *channel.Channel) error {
	if err := c.Send(greeting); err != nil {
		return err
	}
	theirs, err := c.Receive(len(greeting))
	if err != nil {
		return err
	}
	if !bytes.Equal(theirs, greeting) {
		return &channel.Error{
			Family: channel.FamilyMisbehaved, Text: "the peer is another version or no Privet", Said: fmt.Sprintf(": it greets as %q", theirs),
		}
	}
	return nil
}

// receive takes a message of so many bytes and reads it; `what` it is names it where it is wrong.
func receive[T any](c *channel.Channel, what string, size int, read func([]byte) (T, error)) (T, error) {
	var made T
	data, err := c.Receive(size)
	if err != nil {
		return made, err
	}
	if made, err = read(data); err != nil {
		return made, channel.Misbehaviour(what + ": " + err.Error())
	}
	return made, nil
}

// receiveSeeded takes a ciphertext at a level whose random part is a seed.
func receiveSeeded(c *channel.Channel, what string, params ckks.Parameters, level int) (*rlwe.Ciphertext, error) {
	return receive(c, what, wire.SeededBytes(params, level), func(data []byte) (*rlwe.Ciphertext, error) {
		return wire.ReadSeeded(data, params, level)
	})
}

// ReceiveResult takes a result, or another ciphertext in both its parts, at a level; `what` it is names it where it is wrong.
func ReceiveResult(c *channel.Channel, what string, params ckks.Parameters, level int) (*rlwe.Ciphertext, error) {
	return receive(c, what, wire.ResultBytes(params, level), func(data []byte) (*rlwe.Ciphertext, error) {
		return wire.ReadResult(data, params, level)
	})
}

func sendJSON(c *channel.Channel, what any) error {
	return c.Deliver(json.Marshal(what))
}

func receiveJSON(c *channel.Channel, into any) error {
	text, err := c.ReceiveUpTo(maxRequest)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return &channel.Error{Family: channel.FamilyMisbehaved, Text: "a request or answer is not readable", Said: ": " + err.Error()}
	}
	return nil
}

// Refusal is an error that the peer is told about with a reason of its own.
type Refusal struct {
	Reason channel.Reason
	Text   string
}

func (r *Refusal) Error() string { return r.Text }

// Refuse is a refusal with its reason and text.
func Refuse(reason channel.Reason, format string, arguments ...any) error {
	return &Refusal{reason, fmt.Sprintf(format, arguments...)}
}

// GiveUp tells the peer why the session ends.
func GiveUp(c *channel.Channel, err error) {
	var refusal *Refusal
	var known *channel.Error
	switch {
	case errors.As(err, &refusal):
		c.Abort(refusal.Reason, refusal.Text)
	case errors.As(err, &known) && known.Family == channel.FamilyMisbehaved:
		c.Abort(channel.Misbehaved, known.Text)
	case errors.As(err, &known):
		// The link itself failed: nobody is there to be told.
	default:
		c.Abort(channel.Internal, "something failed on this side")
	}
}
