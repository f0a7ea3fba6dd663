package session

import (
	"fmt"
	"math"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/network"
	"privet/ckks/internal/params"
)

// Results are the outputs of an inference, one row for each sample, as groups of samples are decrypted.
//
// A result is right modulo its last modulus. One that has wrapped around is told by places that hold no element: they are zero, and
// another multiple of the modulus in any coefficient moves every slot (docs/reference/protocols/ckks.md, "Results that wrap").
type Results struct {
	outputs [][][]float64
	// wrapped names an output that has wrapped around; "" if none has.
	wrapped string
}

// MostZero is the largest magnitude of a place without an element: a good deal more than noise makes, and a thousandth of what a
// wrapped coefficient moves most slots by.
const MostZero = 0.25

// Collect reads the outputs of so many samples from the slots of a group's results, which are in order.
func (r *Results) Collect(a *Arranged, slots [][]float64, samples int) {
	output := 0
	for index, node := range a.Network.Nodes {
		if node.Kind != network.Output {
			continue
		}
		layout := a.Plan.Layouts[index]
		if output == len(r.outputs) {
			r.outputs = append(r.outputs, nil)
		}
		for ciphertext, free := range layout.Free() {
			for _, place := range free {
				for _, value := range slots[ciphertext][place*a.Plan.Batch : (place+1)*a.Plan.Batch] {
					if !(math.Abs(value) <= MostZero) {
						r.wrapped = node.Name
					}
				}
			}
		}
		taken := layout.Take(slots[:layout.Ciphertexts], a.Plan.Batch, samples)
		r.outputs[output] = append(r.outputs[output], taken...)
		slots = slots[layout.Ciphertexts:]
		output++
	}
}

// Outputs are all of them, or an error if one has wrapped around. It is for the end of an inference: a peer that chose ciphertexts
// must not learn from where it stops whether their decryptions made sense.
func (r *Results) Outputs() ([][][]float64, error) {
	if r.wrapped == "" {
		return r.outputs, nil
	}
	return nil, &channel.Error{
		Family: channel.FamilyInput,
		Text: fmt.Sprintf("output %s has wrapped around and is lost: it goes beyond %v, the most that an encrypted result holds, or a value inside "+
			"went beyond what a refresh holds. This input leads further than those that the program was calibrated with: compile it with samples like "+
			"it, or divide the output in the model", r.wrapped, params.MostResult),
	}
}
