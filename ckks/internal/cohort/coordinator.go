package cohort

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/collective"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/wire"
)

// hub is the coordinator's side of one inference.
type hub struct {
	setup   *Setup
	members []*channel.Channel
	client  *channel.Channel
	sums    *collective.Coordinator
	// vouchers are the members' statements about the cohort's public key and the client's, for the client.
	vouchers []byte
}

// Course is what is to happen between the steps of an inference; what is nil does not.
type Course struct {
	// Prepared is called when keys and model are there, Evaluate when inputs are: the evaluation begins when it returns, and it may
	// set Stop.
	Prepared func()
	Evaluate func() error
	// Step is called with each step of the evaluation, which ends early when Stop is closed.
	Step func(evaluate.Step)
	Stop <-chan struct{}
}

// Coordinate runs one inference with all members and a client.
func Coordinate(s *Setup, members []*channel.Channel, client *channel.Channel, course *Course) error {
	h := &hub{setup: s, members: members, client: client}
	keys, err := h.keys()
	if err != nil {
		return err
	}
	model, err := h.model()
	if err != nil {
		return err
	}
	if course.Prepared != nil {
		course.Prepared()
	}
	return h.infer(model, ckks.NewEvaluator(s.Params, keys), course)
}

// gather receives a message of so many bytes from each member, side by side, and names the member that fails.
func (h *hub) gather(size int) ([][]byte, error) {
	return h.collect(func(link *channel.Channel) ([]byte, error) { return link.Receive(size) })
}

// sum gathers a share of so many bytes from each member, and adds them up.
func sum[T any](h *hub, size int, add func(shares [][]byte) (T, error)) (T, error) {
	shares, err := h.gather(size)
	if err != nil {
		var none T
		return none, err
	}
	return add(shares)
}

// statements gathers one of each member, for all.
func (h *hub) statements() ([]byte, error) {
	gathered, err := h.collect(func(link *channel.Channel) ([]byte, error) { return link.ReceiveUpTo(channel.MaxStatement) })
	if err != nil {
		return nil, err
	}
	return json.Marshal(gathered)
}

func (h *hub) collect(receive func(*channel.Channel) ([]byte, error)) ([][]byte, error) {
	messages := make([][]byte, len(h.members))
	return messages, h.each(func(member int, link *channel.Channel) (err error) {
		messages[member], err = receive(link)
		return err
	})
}

// each does something with all members, side by side, and names those that fail.
func (h *hub) each(do func(member int, link *channel.Channel) error) error {
	failures := make([]error, len(h.members))
	var group sync.WaitGroup
	for member, link := range h.members {
		group.Go(func() {
			if err := do(member, link); err != nil {
				failures[member] = blame(member, err)
			}
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

func (h *hub) broadcast(message []byte) error {
	for member, link := range h.members {
		if err := link.Send(message); err != nil {
			return blame(member, err)
		}
	}
	return nil
}

func (h *hub) keys() (rlwe.EvaluationKeySet, error) {
	contributions, err := h.gather(collective.ContributionBytes)
	if err != nil {
		return nil, err
	}
	if err := h.broadcast(slices.Concat(contributions...)); err != nil {
		return nil, err
	}
	common, err := collective.NewCommon(contributions)
	if err != nil {
		return nil, err
	}
	h.sums = collective.NewCoordinator(h.setup.Params, common, len(h.members))
	public, err := sum(h, h.sums.Sizes().PublicKey, h.sums.PublicKey)
	if err != nil {
		return nil, err
	}
	relinearisation, err := h.relinearisation(public)
	if err != nil {
		return nil, err
	}
	var rotations []*rlwe.GaloisKey
	for _, slots := range h.setup.rotations() {
		level := h.setup.Plan.Rotations[slots]
		key, err := sum(h, h.sums.RotationSize(level), func(shares [][]byte) (*rlwe.GaloisKey, error) {
			return h.sums.Rotation(slots, level, shares)
		})
		if err != nil {
			return nil, err
		}
		rotations = append(rotations, key)
	}
	return rlwe.NewMemEvaluationKeySet(relinearisation, rotations...), nil
}

// relinearisation makes the relinearisation key. Between its rounds members compare the sums, of the public key as well, and get
// the client's.
func (h *hub) relinearisation(public *rlwe.PublicKey) (*rlwe.RelinearizationKey, error) {
	first, err := sum(h, h.sums.Sizes().First, h.sums.RelinearisationFirst)
	if err != nil {
		return nil, err
	}
	for _, message := range [][]byte{wire.AppendQP(nil, h.setup.Params, public.Value[0]), first} {
		if err := h.broadcast(message); err != nil {
			return nil, err
		}
	}
	for range 2 { // what they got, and projections of their shares
		said, err := h.statements()
		if err != nil {
			return nil, err
		}
		if err := h.broadcast(said); err != nil {
			return nil, err
		}
	}
	if err := h.clientKey(public); err != nil {
		return nil, err
	}
	if h.vouchers, err = h.statements(); err != nil {
		return nil, err
	}
	return sum(h, h.sums.Sizes().Second, func(shares [][]byte) (*rlwe.RelinearizationKey, error) {
		return h.sums.Relinearisation(first, shares)
	})
}

// clientKey sends the client the cohort's public key, and members the client's.
func (h *hub) clientKey(public *rlwe.PublicKey) error {
	if err := h.client.Send(wire.AppendQP(nil, h.setup.Params, public.Value...)); err != nil {
		return err
	}
	key, err := h.client.Receive(wire.QPBytes(h.setup.Params, 2))
	if err != nil {
		return err
	}
	signed, err := h.client.ReceiveUpTo(channel.MaxStatement)
	if err != nil {
		return err
	}
	for _, message := range [][]byte{key, signed} {
		if err := h.broadcast(message); err != nil {
			return err
		}
	}
	return nil
}

// model gets the encrypted model from its owner, member 0, now or layer by layer.
func (h *hub) model() (*evaluate.Model, error) {
	owner, how := h.members[0], atOnce
	if h.setup.Streamed {
		how = layerByLayer
	}
	if err := owner.Send([]byte{how}); err != nil {
		return nil, blame(0, err)
	}
	if h.setup.Streamed {
		return evaluate.Stream(h.setup.Network, h.setup.Plan, h.setup.Params, receiver(owner, h.setup)), nil
	}
	model, err := evaluate.Assemble(h.setup.Network, h.setup.Plan, h.setup.Params, receiver(owner, h.setup))
	if err != nil {
		return nil, blame(0, err)
	}
	return model, nil
}

func (h *hub) infer(model *evaluate.Model, evaluator *ckks.Evaluator, course *Course) error {
	if err := h.client.Send(h.vouchers); err != nil {
		return err
	}
	next := func() (*rlwe.Ciphertext, error) {
		return receiver(h.client, h.setup).Next(h.setup.Params.MaxLevel())
	}
	inputs := make([][]evaluate.Values, h.setup.Plan.Groups)
	for group := range inputs {
		var err error
		if inputs[group], err = h.setup.Encrypted(next); err != nil {
			return err
		}
	}
	if course.Evaluate != nil {
		if err := course.Evaluate(); err != nil {
			return err
		}
	}
	help := evaluate.Helpers{Hiding: switched{}, Refresher: &refresher{hub: h}, Stop: course.Stop}
	observe := course.Step
	if observe == nil {
		observe = func(evaluate.Step) {}
	}
	outputs, err := model.RunGroups(evaluator, help, inputs, observe)
	if failed, ok := err.(*evaluate.MakeError); ok {
		return blame(0, failed.Err)
	}
	if err != nil {
		return err
	}
	for _, group := range outputs {
		for _, ct := range slices.Concat(group...) {
			if err := h.switchResults(ct); err != nil {
				return err
			}
		}
	}
	return nil
}

// switchResults switches a result to the client's key with a share of every member.
func (h *hub) switchResults(ct *rlwe.Ciphertext) error {
	data, err := wire.AppendResult(nil, h.setup.Params, ct)
	if err != nil {
		return err
	}
	if err := h.broadcast(data); err != nil {
		return err
	}
	result, err := sum(h, h.sums.SwitchSize(ct.Level()), func(shares [][]byte) (*rlwe.Ciphertext, error) {
		return h.sums.Switch(ct, shares)
	})
	if err != nil {
		return err
	}
	return h.client.Deliver(wire.AppendResult(nil, h.setup.Params, result))
}

// switched results need no hiding by the evaluator: every member adds its own noise when they are handed out.
type switched struct{}

func (switched) Randomise(*rlwe.Ciphertext) error  { return nil }
func (switched) Flood(*rlwe.Ciphertext, int) error { return nil }
