package session

import (
	"fmt"
	"math"
)

// check refuses inputs that the program was not compiled for.
func (a *arranged) check(inputs [][][]float64) error {
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

// groups calls `run` for each group of samples that is evaluated together.
func (a *arranged) groups(run func(first, last int) error) error {
	for group := range a.Plan.Groups {
		first := group * a.Plan.Batch
		if err := run(first, min(first+a.Plan.Batch, a.Program.Batch)); err != nil {
			return err
		}
	}
	return nil
}
