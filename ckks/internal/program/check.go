package program

import (
	"fmt"
	"math"
	"slices"
)

// check bounds the header and the values first, so that nothing later multiplies or allocates unchecked; then every
// value is written once before it is read, and every shape is the one that its operation gives.
func (p *Program) check() error {
	if err := p.checkHeader(); err != nil {
		return err
	}
	written := make([]bool, len(p.Values))
	for _, input := range p.Inputs {
		if !(input.Magnitude > 0) || math.IsInf(input.Magnitude, 0) {
			return fmt.Errorf("input %s: magnitude %v", input.Name, input.Magnitude)
		}
		if err := write(written, input.Value); err != nil {
			return fmt.Errorf("input %s: %w", input.Name, err)
		}
	}
	for i := range p.Operations {
		operation := &p.Operations[i]
		if err := p.checkOperation(operation, written); err != nil {
			return fmt.Errorf("operation %s (%s): %w", operation.Name, operation.Op, err)
		}
	}
	for _, output := range p.Outputs {
		if output.Value < 0 || output.Value >= len(written) || !written[output.Value] {
			return fmt.Errorf("output %s: value %d is never written", output.Name, output.Value)
		}
	}
	return p.checkBatch()
}

func (p *Program) checkHeader() error {
	switch {
	case p.RingBits < 8 || p.RingBits > 64 || p.ScaleBits < 0 || p.ScaleBits >= p.RingBits:
		return fmt.Errorf("its header: ring of %d bits, scale %d", p.RingBits, p.ScaleBits)
	case p.WeightBits < 1 || p.WeightBits > min(31, p.RingBits):
		return fmt.Errorf("its header: weights of %d bits", p.WeightBits)
	case len(p.Inputs) == 0 || len(p.Outputs) == 0:
		return fmt.Errorf("its header: a program needs at least one input and one output")
	case len(p.Operations) > maxOperations || len(p.Values) > 2*maxOperations:
		return fmt.Errorf("its header: more than %d operations", maxOperations)
	case p.Batch < 1 || p.Batch > maxElements:
		return fmt.Errorf("its header: a batch of %d", p.Batch)
	}
	total := 0
	for id, value := range p.Values {
		if !bounded(value.Shape) || value.Scale < 0 || value.Scale >= p.RingBits {
			return fmt.Errorf("value %d: shape %v, scale %d", id, value.Shape, value.Scale)
		}
		total += Elements(value.Shape)
	}
	if total > maxTotal {
		return fmt.Errorf("its values: %d elements in all, more than %d", total, maxTotal)
	}
	return nil
}

func (p *Program) checkOperation(operation *Operation, written []bool) error {
	arity := 1
	switch operation.Op {
	case "add", "sub", "mul":
		arity = 2
	case "concat":
		arity = max(1, len(operation.Inputs))
	}
	if len(operation.Inputs) != arity {
		return fmt.Errorf("%d inputs", len(operation.Inputs))
	}
	shapes := make([][]int, arity)
	for i, id := range operation.Inputs {
		if id < 0 || id >= len(written) || !written[id] {
			return fmt.Errorf("reads value %d before it is written", id)
		}
		shapes[i] = p.Values[id].Shape
	}
	if err := write(written, operation.Output); err != nil {
		return err
	}
	declared := p.Values[operation.Output].Shape
	inferred, err := infer(operation, shapes, declared)
	if err != nil {
		return err
	}
	if !slices.Equal(inferred, declared) {
		return fmt.Errorf("gives %v, not %v", inferred, declared)
	}
	return nil
}

// checkBatch: inputs and outputs of several samples have them along their first axis.
func (p *Program) checkBatch() error {
	if p.Batch == 1 {
		return nil
	}
	check := func(name string, id int) error {
		if shape := p.Values[id].Shape; len(shape) == 0 || shape[0] != p.Batch {
			return fmt.Errorf("%s: shape %v for a batch of %d", name, shape, p.Batch)
		}
		return nil
	}
	for _, input := range p.Inputs {
		if err := check("input "+input.Name, input.Value); err != nil {
			return err
		}
	}
	for _, output := range p.Outputs {
		if err := check("output "+output.Name, output.Value); err != nil {
			return err
		}
	}
	return nil
}

func write(written []bool, id int) error {
	if id < 0 || id >= len(written) || written[id] {
		return fmt.Errorf("writes value %d, which is taken or does not exist", id)
	}
	written[id] = true
	return nil
}

// bounded tells whether a shape's rank, dimensions and number of elements are within limits.
func bounded(shape []int) bool {
	if len(shape) > maxRank {
		return false
	}
	count := 1
	for _, size := range shape {
		if size < 1 || size > maxElements/count {
			return false
		}
		count *= size
	}
	return true
}
