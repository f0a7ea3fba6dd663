package testmodel

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Deep is a model of so many dense layers of one width, each but the last with a polynomial after it.
type Deep struct {
	Public, Private []byte
	Layers          [][][]float64
	Coefficients    []float64
}

// NewDeep makes a deep program with weights from a seed. Its polynomials keep values within [-1, 1].
func NewDeep(layers, degree int, seed uint64) Deep {
	rng := rand.New(rand.NewPCG(seed, 1))
	tensors := map[string][]int64{}
	p := Deep{Coefficients: make([]float64, degree+1)}
	coefficients := make([]int64, degree+1)
	for k := range coefficients {
		coefficients[k] = int64(math.Round(math.Ldexp((rng.Float64()-0.5)/float64(k+1), 24)))
		p.Coefficients[k] = math.Ldexp(float64(coefficients[k]), -24)
	}
	program := chain{model: "deep", magnitude: 1, batch: Batch}
	program.value(Hidden, Scale)
	for layer := range layers {
		p.Layers = append(p.Layers, matrix(rng, tensors, fmt.Sprintf("%d.weight", layer), Hidden, Hidden))
		program.dense(fmt.Sprint("dense", layer), layer, Hidden, Hidden, 2*Scale, "null")
		if layer == layers-1 {
			break
		}
		tensors[fmt.Sprintf("%d.coefficients", layer)] = coefficients
		tensors[fmt.Sprintf("%d.bound", layer)] = []int64{deepBound << (2 * Scale)}
		program.polynomial(fmt.Sprint("act", layer), layer, degree, Hidden, Scale)
	}
	p.Private = safetensors(tensors)
	p.Public = program.public(p.Private)
	return p
}

// deepBound is the bound of all activations' arguments.
const deepBound = 4

// Run computes the model on one sample in the clear.
func (p Deep) Run(x []float64) []float64 {
	x = p.Between(x, 0, 2*(len(p.Layers)-1))
	return p.dense(x, len(p.Layers)-1)
}

// Between computes a value at a stage of the model from one at an earlier stage. Each layer has two: the argument of its
// activation, as a part of its bound, and the activation.
func (p Deep) Between(x []float64, from, to int) []float64 {
	activation := Program{Coefficients: p.Coefficients, Bound: 1}.activation
	for stage := from; stage < to; stage++ {
		made := make([]float64, Hidden)
		for j := range made {
			if stage%2 == 0 {
				made[j] = p.dense(x, stage/2)[j] / deepBound
			} else {
				made[j] = activation(x[j])
			}
		}
		x = made
	}
	return x
}

// dense is a layer's product.
func (p Deep) dense(x []float64, layer int) []float64 {
	y := make([]float64, Hidden)
	for i, row := range p.Layers[layer] {
		for j, weight := range row {
			y[j] += x[i] * weight
		}
	}
	return y
}
