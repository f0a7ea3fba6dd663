package session

import (
	"fmt"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/codec"
	"privet/ckks/internal/evaluate"
)

// Evaluator is a session of a party that has data and evaluates somebody else's encrypted model on it: scenario 2.
type Evaluator struct {
	*asker
	model *evaluate.Model
	keys  *received
	// streamed says that each run gets the model layer by layer.
	streamed bool
}

// OpenEvaluator greets the server as Open does, for an encrypted model. With a limit (bytes, 0: none), a model that does not fit is
// sent anew in each run, layer by layer, and refused with the figure if that does not fit either.
func OpenEvaluator(c *channel.Channel, hash string, limit int64) (*Evaluator, error) {
	opened, err := open(c, hash, EncryptedModel)
	if err != nil {
		return nil, err
	}
	e := &Evaluator{asker: opened, streamed: limit > 0 && opened.Plan.CohortMemory() > limit}
	if need := e.Needs(); limit > 0 && need > limit {
		return nil, fmt.Errorf("evaluating %s encrypted takes about %d MB, more than the limit of %d MB: give more memory, or a smaller batch",
			opened.Program.Model, need/1e6, limit/1e6)
	}
	return e, nil
}

// Needs is the resident memory in bytes that evaluating the model takes.
func (e *Evaluator) Needs() int64 {
	if e.streamed {
		return e.Plan.StreamedMemory()
	}
	return e.Plan.CohortMemory()
}

// Prepare gets keys and the encrypted model: the offline phase. They serve as many inferences as the key's budget of
// decryptions allows.
func (e *Evaluator) Prepare() (Cost, error) {
	meter := Begin(e.channel)
	err := e.ask(request{Request: "model", Parameters: &e.Plan.Set, Batch: e.Plan.Batch, Layers: e.streamed})
	if err != nil {
		return Cost{}, err
	}
	if e.keys, err = receiveKeys(e.channel, e.Plan, e.Params); err != nil {
		return Cost{}, err
	}
	if !e.streamed {
		if e.model, err = evaluate.Assemble(e.Network, e.Plan, e.Params, e.taker()); err != nil {
			return Cost{}, err
		}
	}
	return meter.End(), nil
}

func (e *Evaluator) taker() Taker {
	return Taker{Params: e.Params, Batch: e.Plan.Batch, Channel: e.channel, Next: e.part}
}

// Infer evaluates the model on inputs, one row for each sample of each input, and gives the outputs alike: the online
// phase. `observe` is called after each step.
func (e *Evaluator) Infer(inputs [][][]float64, observe func(evaluate.Step)) ([][][]float64, Cost, error) {
	meter := Begin(e.channel)
	if e.keys == nil {
		return nil, Cost{}, fmt.Errorf("the model comes before data: call Prepare first")
	}
	if err := e.Check(inputs); err != nil {
		return nil, Cost{}, err
	}
	var results Results
	err := e.Groups(func(first, last int) error {
		slots, err := e.evaluate(inputs, first, last, observe)
		if err != nil {
			return err
		}
		results.Collect(&e.Arranged, slots, last-first)
		return nil
	})
	if err != nil {
		return nil, Cost{}, err
	}
	outputs, err := results.Outputs()
	return outputs, meter.End(), err
}

func (e *Evaluator) evaluate(inputs [][][]float64, first, last int, observe func(evaluate.Step)) ([][]float64, error) {
	values, err := e.encode(inputs, first, last)
	if err != nil {
		return nil, err
	}
	randomiser, err := evaluate.NewRandomiser(e.Params, e.keys.zero)
	if err != nil {
		return nil, err
	}
	if e.streamed || e.Plan.Refreshes() > 0 {
		if err := e.ask(request{Request: "run"}); err != nil {
			return nil, err
		}
	}
	model := e.model
	if e.streamed {
		model = evaluate.Stream(e.Network, e.Plan, e.Params, e.taker())
	}
	masks := &masker{Randomiser: randomiser, params: e.Params}
	help := evaluate.Helpers{Hiding: masks, Refresher: &refresher{randomiser, e}}
	results, err := model.Run(e.keys.evaluator, help, values, observe)
	if failed, ok := err.(*evaluate.MakeError); ok {
		return nil, failed.Err
	}
	if err != nil {
		return nil, err
	}
	if err := e.ask(request{Request: "decrypt"}); err != nil {
		return nil, err
	}
	var slots [][]float64
	for _, result := range results {
		for _, ct := range result {
			opened, err := e.opened(ct, masks.masks[len(slots)], e.Outputs()[len(slots)])
			if err != nil {
				return nil, err
			}
			slots = append(slots, opened)
		}
	}
	return slots, nil
}

// encode gives inputs the form of ciphertexts of a single part: values that need no encryption here.
func (e *Evaluator) encode(inputs [][][]float64, first, last int) ([]evaluate.Values, error) {
	encoder := codec.New(e.Params)
	values := make([]evaluate.Values, len(inputs))
	err := e.Fill(inputs, first, last, func(input int, slots []float64) error {
		pt := ckks.NewPlaintext(e.Params, e.Params.MaxLevel())
		if err := encoder.Encode(slots, pt); err != nil {
			return err
		}
		ct := ckks.NewCiphertext(e.Params, 0, pt.Level())
		ct.Value[0].Copy(pt.Value)
		values[input] = append(values[input], ct)
		return nil
	})
	return values, err
}

// part takes a ciphertext of the encrypted model as it is sent.
func (e *Evaluator) part(level int) (*rlwe.Ciphertext, error) {
	return receiveSeeded(e.channel, "a part of the model", e.Params, level)
}
