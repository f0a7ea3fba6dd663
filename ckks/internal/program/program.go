// Package program reads compiled programs: the public half (JSON) and the private half (safetensors).
//
// A public half may come from a peer. Parse bounds every size and checks every shape before anything is computed from
// it, so that a *Program in hand is a consistent one. The file format is that of crates/program.
package program

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
)

// Limits of what Parse accepts.
const (
	MaxBytes      = 4 << 20
	maxOperations = 1 << 12
	maxElements   = 1 << 28
	maxTotal      = 1 << 32
	maxRank       = 8
	maxDegree     = 1 << 10
)

// CoefficientBits are the fractional bits of a polynomial's coefficients.
const CoefficientBits = 24

const (
	format  = "privet-program"
	version = 1
)

// Value is a tensor's shape and the power of two that its integers are scaled by.
type Value struct {
	Shape []int `json:"shape"`
	Scale int   `json:"scale"`
}

// Len is the number of elements.
func (v Value) Len() int { return Elements(v.Shape) }

// Input is what the client gives; no real in it may exceed Magnitude.
type Input struct {
	Name      string  `json:"name"`
	Value     int     `json:"value"`
	Magnitude float64 `json:"magnitude"`
}

// Output is what the client learns. Client is a step that it does in the clear, and Kind tells what its numbers are in the model; this
// program leaves both to its caller.
type Output struct {
	Name   string      `json:"name"`
	Value  int         `json:"value"`
	Client *ClientStep `json:"client"`
	Kind   string      `json:"kind"`
}

// ClientStep is a softmax or its logarithm.
type ClientStep struct {
	Op      string `json:"op"`
	Axis    int    `json:"axis"`
	Flatten bool   `json:"flatten"`
}

// Operation is one step; the fields after Output are attributes that only some operators have. A key that differs from its
// field by more than capitals is written beside it.
type Operation struct {
	Op, Name string
	Inputs   []int
	Output   int

	Weight, Coefficients, Bound              string
	Bias                                     *string
	WeightShape                              []int `json:"weight_shape"`
	BiasShape                                []int `json:"bias_shape"`
	Stride, Padding, Dilation, Kernel        []int
	Perm, Starts, Ends, Steps, Before, After []int
	Groups, Bits, Degree, Axis               int
	Factors                                  []int64
	Constant                                 int64
	Keepdims                                 bool
	SelectLast                               bool `json:"select_last"`
}

// Program is the public half, checked.
type Program struct {
	Format     string      `json:"format"`
	Version    int         `json:"version"`
	Model      string      `json:"model"`
	RingBits   int         `json:"ring_bits"`
	ScaleBits  int         `json:"scale_bits"`
	WeightBits int         `json:"weight_bits"`
	Commitment string      `json:"weights_commitment"`
	Inputs     []Input     `json:"inputs"`
	Outputs    []Output    `json:"outputs"`
	Values     []Value     `json:"values"`
	Operations []Operation `json:"operations"`
	Batch      int         `json:"batch"`
	// Calibration says what the ranges rest on, for people.
	Calibration string `json:"calibration"`
	// Head is what the client computes in the clear on the outputs, which this program leaves to its caller.
	Head json.RawMessage `json:"head"`
	// Front is what the client computes in the clear on what the user gives, before the inputs; it is left to the
	// caller, too.
	Front json.RawMessage `json:"front"`

	// Hash is the SHA-256 of the public half, the name by which both parties know the program.
	Hash string `json:"-"`
}

// HashOf names a public half: its SHA-256 in hexadecimal.
func HashOf(public []byte) string {
	digest := sha256.Sum256(public)
	return hex.EncodeToString(digest[:])
}

// Parse reads and checks a public half.
func Parse(data []byte) (*Program, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("the program has %d bytes, more than %d", len(data), MaxBytes)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	program := &Program{Batch: 1}
	if err := decoder.Decode(program); err != nil {
		return nil, fmt.Errorf("the program is not readable: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return nil, fmt.Errorf("the program is followed by something else")
	}
	if program.Format != format || program.Version != version {
		return nil, fmt.Errorf("the program has format %q version %d; this build reads %q version %d",
			program.Format, program.Version, format, version)
	}
	if err := program.check(); err != nil {
		return nil, fmt.Errorf("the program is inconsistent at %w", err)
	}
	program.Hash = HashOf(data)
	return program, nil
}

// Elements is how many a tensor of a shape has.
func Elements(shape []int) int {
	count := 1
	for _, size := range shape {
		count *= size
	}
	return count
}

// Magnitudes are the largest that each input may have.
func (p *Program) Magnitudes() []float64 {
	made := make([]float64, len(p.Inputs))
	for i, input := range p.Inputs {
		made[i] = input.Magnitude
	}
	return made
}
