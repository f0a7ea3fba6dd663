package session

import (
	"fmt"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/codec"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/wire"
)

// Guest is a session of a party that has data and evaluates somebody else's encrypted model on it: scenario 2.
type Guest struct {
	*arranged
	channel *channel.Channel
	model   *evaluate.Model
	keys    *received
	// streamed says that each run gets the model layer by layer.
	streamed bool
}

// Visit greets the server as Open does, for an encrypted model. With a limit (bytes, 0: none), a model that does not fit is
// sent anew in each run, layer by layer, and refused with the figure if that does not fit either.
func Visit(c *channel.Channel, model, hash string, limit int64) (*Guest, error) {
	made, err := open(c, model, hash, EncryptedModel)
	if err != nil {
		return nil, err
	}
	g := &Guest{arranged: made, channel: c, streamed: limit > 0 && made.Plan.CohortMemory() > limit}
	if need := g.Needs(); limit > 0 && need > limit {
		return nil, fmt.Errorf("evaluating %s encrypted takes about %d MB, more than the limit of %d MB: give more memory, or a smaller batch",
			made.Program.Model, need/1e6, limit/1e6)
	}
	return g, nil
}

// Needs is the resident memory in bytes that evaluating the model takes.
func (g *Guest) Needs() int64 {
	if g.streamed {
		return g.Plan.StreamedMemory()
	}
	return g.Plan.CohortMemory()
}

// Prepare gets keys and the encrypted model: the offline phase. They serve as many inferences as the key's budget of
// decryptions allows.
func (g *Guest) Prepare() (Cost, error) {
	meter := Begin(g.channel)
	err := ask(g.channel, request{
		Request: "model", Program: g.Program.Hash, Parameters: &g.Plan.Set, Batch: g.Plan.Batch, Layers: g.streamed,
	})
	if err != nil {
		return Cost{}, err
	}
	if err := acknowledged(g.channel); err != nil {
		return Cost{}, err
	}
	if g.keys, err = receiveKeys(g.channel, g.Plan, g.params); err != nil {
		return Cost{}, err
	}
	if !g.streamed {
		if g.model, err = evaluate.Assemble(g.Network, g.Plan, g.params, g.taker()); err != nil {
			return Cost{}, err
		}
	}
	return meter.End(), nil
}

func (g *Guest) taker() Taker {
	return Taker{Params: g.params, Batch: g.Plan.Batch, Channel: g.channel, Next: g.part}
}

// Infer evaluates the model on inputs, one row for each sample of each input, and gives the outputs alike: the online
// phase. `observe` hears of each step.
func (g *Guest) Infer(inputs [][][]float64, observe func(evaluate.Step)) ([][][]float64, Cost, error) {
	meter := Begin(g.channel)
	if g.keys == nil {
		return nil, Cost{}, fmt.Errorf("the model comes before data: call Prepare first")
	}
	if err := g.check(inputs); err != nil {
		return nil, Cost{}, err
	}
	var outputs [][][]float64
	err := g.groups(func(first, last int) error {
		slots, err := g.evaluate(inputs, first, last, observe)
		if err != nil {
			return err
		}
		g.collect(&outputs, slots, last-first)
		return nil
	})
	return outputs, meter.End(), err
}

// Close says goodbye.
func (g *Guest) Close() error { return leave(g.channel) }

func (g *Guest) evaluate(inputs [][][]float64, first, last int, observe func(evaluate.Step)) ([][]float64, error) {
	values, err := g.encode(inputs, first, last)
	if err != nil {
		return nil, err
	}
	randomiser, err := evaluate.NewRandomiser(g.params, g.keys.zero)
	if err != nil {
		return nil, err
	}
	if g.streamed || g.Plan.Refreshes() > 0 {
		if err := g.agree("run"); err != nil {
			return nil, err
		}
	}
	model := g.model
	if g.streamed {
		model = evaluate.Stream(g.Network, g.Plan, g.params, g.taker())
	}
	masks := &masker{Randomiser: randomiser, params: g.params}
	help := evaluate.Helpers{Hiding: masks, Refresher: &refresher{randomiser, g}}
	results, err := model.Run(g.keys.evaluator, help, values, observe)
	if failed, ok := err.(*evaluate.MakeError); ok {
		return nil, failed.Err
	}
	if err != nil {
		return nil, err
	}
	if err := g.agree("decrypt"); err != nil {
		return nil, err
	}
	var slots [][]float64
	for _, result := range results {
		for _, ct := range result {
			opened, err := g.opened(ct, masks.masks[len(slots)], g.outputs()[len(slots)])
			if err != nil {
				return nil, err
			}
			slots = append(slots, opened)
		}
	}
	return slots, nil
}

// agree asks the server for something that it may refuse.
func (g *Guest) agree(what string) error {
	if err := ask(g.channel, request{Request: what, Program: g.Program.Hash}); err != nil {
		return err
	}
	return acknowledged(g.channel)
}

// encode gives inputs the form of ciphertexts of a single part: values that need no encryption here.
func (g *Guest) encode(inputs [][][]float64, first, last int) ([]evaluate.Values, error) {
	encoder := codec.New(g.params)
	var values []evaluate.Values
	for i := range inputs {
		var made evaluate.Values
		for _, slots := range g.Plan.Layouts[i].Fill(inputs[i][first:last], g.Plan.Batch) {
			pt := ckks.NewPlaintext(g.params, g.params.MaxLevel())
			if err := encoder.Encode(slots, pt); err != nil {
				return nil, err
			}
			ct := ckks.NewCiphertext(g.params, 0, pt.Level())
			ct.Value[0].Copy(pt.Value)
			made = append(made, ct)
		}
		values = append(values, made)
	}
	return values, nil
}

// part takes a ciphertext of the encrypted model as it is sent.
func (g *Guest) part(level int) (*rlwe.Ciphertext, error) {
	data, err := g.channel.Receive(wire.SeededBytes(g.params, level))
	if err != nil {
		return nil, err
	}
	ct, err := wire.ReadSeeded(data, g.params, level)
	if err != nil {
		return nil, channel.Misbehaviour("a part of the model: " + err.Error())
	}
	return ct, nil
}
