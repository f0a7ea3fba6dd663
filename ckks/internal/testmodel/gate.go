package testmodel

import "math/rand/v2"

// Gate is a model that multiplies a dense layer's value with a composition of two polynomials of it, as an approximate
// ReLU does, and ends with another dense layer.
type Gate struct {
	Public, Private []byte
	first, second   [][]float64
	inner, outer    []float64
}

// Bounds of the two polynomials.
const (
	innerBound = 4
	outerBound = 2
)

// NewGate makes a gate with weights from a seed; its polynomials have degree 3.
func NewGate(seed uint64) Gate {
	rng := rand.New(rand.NewPCG(seed, 1))
	tensors := map[string][]int64{}
	p := Gate{
		first:  matrix(rng, tensors, "0.weight", Inputs, Hidden),
		inner:  vector(rng, tensors, "1.coefficients", 4, 24),
		outer:  vector(rng, tensors, "2.coefficients", 4, 24),
		second: matrix(rng, tensors, "4.weight", Hidden, Outputs),
	}
	tensors["1.bound"] = []int64{innerBound << (2 * Scale)}
	tensors["2.bound"] = []int64{outerBound << Scale}
	p.Private = safetensors(tensors)
	program := chain{model: "gate", magnitude: 4, batch: Batch}
	program.value(Inputs, Scale)
	program.dense("first", 0, Inputs, Hidden, 2*Scale, "null")
	program.polynomial("inner", 1, 3, Hidden, Scale)
	program.polynomial("outer", 2, 3, Hidden, Scale)
	program.add("mul", "gate", "1,3", Hidden, 3*Scale, "")
	program.dense("second", 4, Hidden, Outputs, 4*Scale, "null")
	p.Public = program.public(p.Private)
	return p
}

// Run computes the model on one sample in the clear.
func (p Gate) Run(x []float64) []float64 {
	y := make([]float64, Outputs)
	for j := range Hidden {
		value := 0.0
		for i, row := range p.first {
			value += x[i] * row[j]
		}
		inner := Program{Coefficients: p.inner, Bound: innerBound}.activation(value)
		value *= Program{Coefficients: p.outer, Bound: outerBound}.activation(inner)
		for k := range y {
			y[k] += value * p.second[j][k]
		}
	}
	return y
}
