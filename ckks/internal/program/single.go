package program

import (
	"fmt"
	"slices"
)

// Single is the same program for one sample: every value is its samples' values joined along the first axis, so that
// axis shrinks by the batch. It fails if an operation could mix samples. Tensors that the private half repeats for each
// sample keep their names; of them the first sample's part is meant (see Operation.Repeats).
func (p *Program) Single() (*Program, error) {
	if p.Batch == 1 {
		return p, nil
	}
	single := *p
	single.Batch = 1
	single.Values = make([]Value, len(p.Values))
	for id, value := range p.Values {
		if len(value.Shape) == 0 || value.Shape[0]%p.Batch != 0 {
			return nil, fmt.Errorf("value %d of shape %v does not hold %d samples", id, value.Shape, p.Batch)
		}
		shape := slices.Clone(value.Shape)
		shape[0] /= p.Batch
		single.Values[id] = Value{Shape: shape, Scale: value.Scale}
	}
	single.Operations = slices.Clone(p.Operations)
	for i := range single.Operations {
		operation := &single.Operations[i]
		if err := operation.narrow(p.Values[operation.Inputs[0]].Shape[0], p.Batch); err != nil {
			return nil, fmt.Errorf("operation %s (%s): %w", operation.Name, operation.Op, err)
		}
	}
	if err := single.check(); err != nil {
		return nil, fmt.Errorf("the program mixes samples at %w", err)
	}
	return &single, nil
}

// Repeats is how many equal parts the private tensor of a narrowed operation has.
func (o *Operation) Repeats(elements int) int {
	shape := o.WeightShape
	if o.Op == "add_constant" {
		shape = o.BiasShape
	}
	return elements / Elements(shape)
}

// narrow divides what the operation says about the first axis, which has `rows` rows, by the batch.
func (o *Operation) narrow(rows, batch int) error {
	switch o.Op {
	case "scale":
		o.WeightShape = slices.Clone(o.WeightShape)
		o.WeightShape[0] /= batch
	case "add_constant":
		if len(o.BiasShape) > 0 && o.BiasShape[0] == rows && rows > 1 {
			o.BiasShape = slices.Clone(o.BiasShape)
			o.BiasShape[0] /= batch
		}
	case "transpose":
		if o.Perm[0] != 0 {
			return fmt.Errorf("it moves the axis of the samples")
		}
	case "slice":
		if o.Starts[0] != 0 || o.Ends[0] != rows || o.Steps[0] != 1 {
			return fmt.Errorf("it cuts the axis of the samples")
		}
		o.Ends = slices.Clone(o.Ends)
		o.Ends[0] /= batch
	case "concat":
		if o.Axis == 0 {
			return fmt.Errorf("it joins along the axis of the samples")
		}
	case "pad":
		if o.Before[0] != 0 || o.After[0] != 0 {
			return fmt.Errorf("it pads the axis of the samples")
		}
	case "argmax":
		if o.Axis == 0 {
			return fmt.Errorf("it works along the axis of the samples")
		}
	}
	return nil
}
