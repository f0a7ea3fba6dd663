// Package testmodel makes small programs and certificates for tests.
package testmodel

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Sizes of the program: inputs, hidden units, outputs. Scale is that of every value, Batch the number of samples.
const (
	Inputs, Hidden, Outputs = 12, 7, 3
	Scale, Batch            = 12, 2
)

// Program is a small model, two dense layers with a polynomial of a degree between them, and its two halves.
type Program struct {
	Public, Private []byte
	First, Second   [][]float64
	Bias            []float64
	Coefficients    []float64
	Bound           float64
}

// New makes a program with weights from a seed.
func New(degree int, seed uint64) Program { return NewBatch(degree, seed, Batch) }

// NewBatch is New for a batch of samples.
func NewBatch(degree int, seed uint64, batch int) Program {
	rng := rand.New(rand.NewPCG(seed, 1))
	p := Program{Bound: 4}
	tensors := map[string][]int64{}
	p.First = matrix(rng, tensors, "0.weight", Inputs, Hidden)
	p.Bias = vector(rng, tensors, "0.bias", Hidden, 2*Scale)
	p.Coefficients = vector(rng, tensors, "1.coefficients", degree+1, 24)
	tensors["1.bound"] = []int64{int64(p.Bound) << (2 * Scale)}
	p.Second = matrix(rng, tensors, "2.weight", Hidden, Outputs)
	p.Private = safetensors(tensors)
	program := chain{model: "toy", magnitude: 4, batch: batch}
	program.value(Inputs, Scale)
	program.dense("first", 0, Inputs, Hidden, 2*Scale, `"0.bias"`)
	program.polynomial("act", 1, degree, Hidden, Scale)
	program.dense("second", 2, Hidden, Outputs, 2*Scale, "null")
	p.Public = program.public(p.Private)
	return p
}

// chain is a program in the making, whose dense layers and polynomials read the value before their own.
type chain struct {
	model              string
	magnitude          float64
	batch              int
	values, operations []string
}

func (c *chain) value(width, scale int) {
	c.values = append(c.values, fmt.Sprintf(`{"shape":[%d,%d],"scale":%d}`, c.batch, width, scale))
}

// add adds an operation of some attributes, and the value that it makes.
func (c *chain) add(op, name, inputs string, width, scale int, attributes string) {
	c.operations = append(c.operations, fmt.Sprintf(`{"op":"%s","name":"%s","inputs":[%s],"output":%d%s}`, op, name, inputs, len(c.values), attributes))
	c.value(width, scale)
}

// last is the value that was made last.
func (c *chain) last() string { return fmt.Sprint(len(c.values) - 1) }

// dense adds a dense layer with the tensors of a number.
func (c *chain) dense(name string, tensors, rows, columns, scale int, bias string) {
	c.add("dense", name, c.last(), columns, scale, fmt.Sprintf(`,"weight":"%d.weight","weight_shape":[%d,%d],"bias":%s`, tensors, rows, columns, bias))
}

// polynomial adds a polynomial with the tensors of a number.
func (c *chain) polynomial(name string, tensors, degree, width, scale int) {
	c.add("polynomial", name, c.last(), width, scale, fmt.Sprintf(`,"coefficients":"%[1]d.coefficients","bound":"%[1]d.bound","degree":%[2]d`, tensors, degree))
}

// public is the program's public half, whose private half is given.
func (c *chain) public(private []byte) []byte {
	digest := sha256.Sum256(private)
	return fmt.Appendf(nil, `{"format":"privet-program","version":1,"model":"%s","ring_bits":50,"scale_bits":%d,
		"weight_bits":16,"weights_commitment":"%s","inputs":[{"name":"x","value":0,"magnitude":%.1f}],
		"outputs":[{"name":"y","value":%s,"client":null}],"values":[%s],"operations":[%s],"batch":%d}`,
		c.model, Scale, hex.EncodeToString(digest[:]), c.magnitude, c.last(),
		strings.Join(c.values, ","), strings.Join(c.operations, ","), c.batch)
}

// Run computes the model on one sample in the clear.
func (p Program) Run(x []float64) []float64 {
	hidden := slices.Clone(p.Bias)
	for i, row := range p.First {
		for j, weight := range row {
			hidden[j] += x[i] * weight
		}
	}
	y := make([]float64, Outputs)
	for i, row := range p.Second {
		for j, weight := range row {
			y[j] += p.activation(hidden[i]) * weight
		}
	}
	return y
}

func (p Program) activation(x float64) float64 {
	t := x / p.Bound
	older, newer, total := 1.0, t, p.Coefficients[0]
	for _, coefficient := range p.Coefficients[1:] {
		total += coefficient * newer
		older, newer = newer, 2*t*newer-older
	}
	return total
}

func matrix(rng *rand.Rand, tensors map[string][]int64, name string, rows, columns int) [][]float64 {
	flat := vector(rng, tensors, name, rows*columns, Scale)
	made := make([][]float64, rows)
	for i := range made {
		made[i] = flat[i*columns : (i+1)*columns]
	}
	return made
}

func vector(rng *rand.Rand, tensors map[string][]int64, name string, count, scale int) []float64 {
	values := make([]float64, count)
	for i := range values {
		integer := rng.Int64N(1<<scale) - 1<<(scale-1)
		tensors[name] = append(tensors[name], integer)
		values[i] = float64(integer) / float64(int64(1)<<scale)
	}
	return values
}

func safetensors(tensors map[string][]int64) []byte {
	header := map[string]any{}
	var body []byte
	for name, tensor := range tensors {
		start := len(body)
		for _, value := range tensor {
			body = binary.LittleEndian.AppendUint64(body, uint64(value))
		}
		header[name] = map[string]any{
			"dtype": "I64", "shape": []int{len(tensor)}, "data_offsets": []int{start, len(body)},
		}
	}
	text, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	return append(append(file, text...), body...)
}
