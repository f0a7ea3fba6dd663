package session

import (
	"fmt"
	"math"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/network"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/program"
	"privet/ckks/internal/secret"
)

// Arranged is a program as it is evaluated. All parties arrange it alike, each on its own.
type Arranged struct {
	// Program is what is offered, Network its structure, Plan how it will be evaluated.
	Program *program.Program
	Network *network.Network
	Plan    *plan.Plan
	Params  ckks.Parameters
}

// Check refuses inputs that the program was not compiled for.
func (a *Arranged) Check(inputs [][][]float64) error {
	if len(inputs) != len(a.Program.Inputs) {
		return fmt.Errorf("%d inputs given, the model has %d", len(inputs), len(a.Program.Inputs))
	}
	for i, input := range a.Program.Inputs {
		size := a.Network.Nodes[i].Size
		if len(inputs[i]) != a.Program.Batch {
			return fmt.Errorf("input %s has %d samples, not %d", input.Name, len(inputs[i]), a.Program.Batch)
		}
		for _, sample := range inputs[i] {
			if len(sample) != size {
				return fmt.Errorf("input %s has %d elements, not %d", input.Name, len(sample), size)
			}
			for _, value := range sample {
				if !(math.Abs(value) <= input.Magnitude) {
					return fmt.Errorf("input %s holds %v, and the program was compiled for magnitudes up to %v", input.Name, value, input.Magnitude)
				}
			}
		}
	}
	return nil
}

// Groups calls `run` for each group of samples that is evaluated together.
func (a *Arranged) Groups(run func(first, last int) error) error {
	for group := range a.Plan.Groups {
		first := group * a.Plan.Batch
		if err := run(first, min(first+a.Plan.Batch, a.Program.Batch)); err != nil {
			return err
		}
	}
	return nil
}

// Fill calls `take` with the slots of each ciphertext of a group's inputs, in order.
func (a *Arranged) Fill(inputs [][][]float64, first, last int, take func(input int, slots []float64) error) error {
	for i := range inputs {
		for _, slots := range a.Plan.Layouts[i].Fill(inputs[i][first:last], a.Plan.Batch) {
			if err := take(i, slots); err != nil {
				return err
			}
		}
	}
	return nil
}

// Encrypted are a group's inputs, their ciphertexts as `next` gives them, in order.
func (a *Arranged) Encrypted(next func() (*rlwe.Ciphertext, error)) ([]evaluate.Values, error) {
	var inputs []evaluate.Values
	for index, node := range a.Network.Nodes {
		if node.Kind != network.Input {
			continue
		}
		values := make(evaluate.Values, a.Plan.Layouts[index].Ciphertexts)
		for i := range values {
			var err error
			if values[i], err = next(); err != nil {
				return nil, err
			}
		}
		inputs = append(inputs, values)
	}
	return inputs, nil
}

// Outputs are the output nodes that the ciphertexts of one group's results belong to, in order.
func (a *Arranged) Outputs() []int {
	var found []int
	for index, node := range a.Network.Nodes {
		if node.Kind == network.Output {
			for range a.Plan.Layouts[index].Ciphertexts {
				found = append(found, index)
			}
		}
	}
	return found
}

// Decrypt receives the results of a group of so many samples.
func (a *Arranged) Decrypt(c *channel.Channel, key *secret.Key, results *Results, samples int) error {
	var slots [][]float64
	for _, index := range a.Outputs() {
		ct, err := ReceiveResult(c, "a result", a.Params, a.Plan.Set.Floor())
		if err != nil {
			return err
		}
		values, err := key.Decrypt(ct, a.Plan.Period(index))
		if err != nil {
			return err
		}
		slots = append(slots, values)
	}
	results.Collect(a, slots, samples)
	return nil
}
