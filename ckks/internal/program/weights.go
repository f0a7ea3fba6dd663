package program

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
)

// Weights are the server's private integer tensors by name.
type Weights struct {
	tensors map[string][]int64
}

type entry struct {
	Dtype   string `json:"dtype"`
	Shape   []int  `json:"shape"`
	Offsets [2]int `json:"data_offsets"`
}

// ParseWeights reads a safetensors file and checks that it is the one that the program was compiled with, and that every
// tensor is there, with its number of elements and within the bits that the program declares.
func ParseWeights(data []byte, p *Program) (*Weights, error) {
	digest := sha256.Sum256(data)
	if hex.EncodeToString(digest[:]) != p.Commitment {
		return nil, fmt.Errorf("these weights belong to another program: compile the model again, or use the two files saved together")
	}
	entries, body, err := safetensors(data)
	if err != nil {
		return nil, fmt.Errorf("the weights are not readable: %w", err)
	}
	weights := &Weights{tensors: map[string][]int64{}}
	for i := range p.Operations {
		for _, need := range p.private(&p.Operations[i]) {
			tensor, err := read(entries, body, need)
			if err != nil {
				return nil, fmt.Errorf("the weights are not readable: tensor %s: %w", need.name, err)
			}
			weights.tensors[need.name] = tensor
		}
	}
	return weights, nil
}

// Tensor is the tensor of that name, which an operation of the program reads.
func (w *Weights) Tensor(name string) []int64 { return w.tensors[name] }

func safetensors(data []byte) (map[string]entry, []byte, error) {
	if len(data) < 8 {
		return nil, nil, fmt.Errorf("the file is too short")
	}
	length := binary.LittleEndian.Uint64(data)
	if length > uint64(len(data)-8) {
		return nil, nil, fmt.Errorf("the file is too short for its header")
	}
	entries := map[string]entry{}
	if err := json.Unmarshal(data[8:8+length], &entries); err != nil {
		return nil, nil, err
	}
	return entries, data[8+length:], nil
}

// needed is a private tensor that an operation reads: its number of elements and the bits of their magnitudes.
type needed struct {
	name        string
	count, bits int
}

func (p *Program) private(o *Operation) []needed {
	var all []needed
	weight := func(name string, count int) { all = append(all, needed{name, count, p.WeightBits}) }
	wide := func(name string, count int) { all = append(all, needed{name, count, p.RingBits - 1}) }
	switch o.Op {
	case "conv2d", "dense":
		weight(o.Weight, Elements(o.WeightShape))
		if o.Bias != nil {
			wide(*o.Bias, o.columns())
		}
	case "scale":
		weight(o.Weight, Elements(o.WeightShape))
	case "add_constant":
		if o.Bias != nil {
			wide(*o.Bias, Elements(o.BiasShape))
		}
	case "polynomial":
		wide(o.Coefficients, o.Degree+1)
		wide(o.Bound, 1)
	}
	return all
}

// columns is how many outputs a convolution or dense layer has for each position or row.
func (o *Operation) columns() int {
	if o.Op == "conv2d" {
		return o.WeightShape[0]
	}
	return o.WeightShape[1]
}

func read(entries map[string]entry, body []byte, need needed) ([]int64, error) {
	found, ok := entries[need.name]
	if !ok {
		return nil, fmt.Errorf("it is missing")
	}
	start, end := found.Offsets[0], found.Offsets[1]
	if found.Dtype != "I64" || start < 0 || end > len(body) || end-start != 8*need.count {
		return nil, fmt.Errorf("%s %v where int64 with %d elements belongs", found.Dtype, found.Shape, need.count)
	}
	tensor := make([]int64, need.count)
	limit := int64(1) << min(need.bits, 62)
	for i := range tensor {
		tensor[i] = int64(binary.LittleEndian.Uint64(body[start+8*i:]))
		if tensor[i] <= -limit || tensor[i] >= limit {
			return nil, fmt.Errorf("%d needs more than %d bits", tensor[i], need.bits)
		}
	}
	return tensor, nil
}
