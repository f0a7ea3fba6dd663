package session

import (
	"fmt"
	"time"

	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/flood"
	"privet/ckks/internal/network"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/program"
)

// Served is a program that a server offers on its terms: in scenario 1 ready to be evaluated, in scenario 2 to be encrypted.
type Served struct {
	*arranged
	Public []byte
	model  *evaluate.Model
	// full is the network with its weights.
	full *network.Network
	// Strength is by how many bits flooding protects keys or weights; 0 where it is not statistical.
	Strength float64
	// StrengthAnyInput is the same if inputs drive values out of the intervals that calibration measured.
	StrengthAnyInput float64
}

// Serve reads both halves of a program, plans it and, in scenario 1, encodes its weights. With a limit (bytes, 0: none), a
// program that does not fit is refused with the figure before anything is encoded.
func Serve(public, private []byte, terms Terms, limit int64) (*Served, error) {
	// The plan is that of a client, which sees no weights.
	made, err := arrange(public, terms)
	if err != nil {
		return nil, err
	}
	s := &Served{arranged: made, Public: public}
	if need := s.Needs(); limit > 0 && need > limit {
		return nil, fmt.Errorf("serving %s takes about %d MB, more than the limit of %d MB: give more memory, or a smaller batch",
			made.Program.Model, need/1e6, limit/1e6)
	}
	if err := s.read(private); err != nil {
		return nil, err
	}
	if terms.Scenario == EncryptedData {
		s.model, err = evaluate.NewModel(s.full, made.Plan)
	}
	return s, err
}

// CheckWeights refuses a program that Serve would refuse for its weights.
func (t Terms) CheckWeights(public, private []byte) error {
	made, err := arrange(public, t)
	if err != nil {
		return err
	}
	return (&Served{arranged: made}).read(private)
}

// read takes the weights, and refuses those that leave no room for flooding.
func (s *Served) read(private []byte) error {
	weights, err := program.ParseWeights(private, s.Program)
	if err != nil {
		return err
	}
	if s.full, err = s.build(weights); err != nil || s.Plan.Holders == 0 {
		return err
	}
	scene := flood.Scene{Holders: 1, Model: s.Terms.Scenario == EncryptedModel, Magnitudes: s.Program.Magnitudes()}
	s.Strength, err = flood.Check(s.full, s.Plan, scene)
	if err == nil {
		s.StrengthAnyInput = flood.ForAnyInput(s.full, s.Plan, scene)
	} else if s.Terms.Scenario == EncryptedData {
		err = orLight(err)
	}
	return err
}

// Needs is the resident memory in bytes that serving one client takes.
func (s *Served) Needs() int64 {
	if s.Terms.Scenario == EncryptedModel {
		return s.Plan.OwnerMemory()
	}
	return s.Plan.Memory().Server()
}

// Seconds is about what evaluating one group takes on one processor: the plan's transforms, at what one takes here and now.
// Where clients evaluate, it is what decrypting a result takes.
func (s *Served) Seconds() float64 {
	if s.Terms.Scenario == EncryptedModel {
		set := s.Plan.Set
		return float64(set.Limbs(set.Floor())) * transformSeconds(s.Params)
	}
	return EvaluationSeconds(s.Plan, s.Params) / float64(s.Plan.Groups)
}

// EvaluationSeconds is about what evaluating all groups of a plan takes on one processor.
func EvaluationSeconds(p *plan.Plan, params ckks.Parameters) float64 {
	unit := float64(p.Set.Slots()) * float64(p.Set.LogN)
	return p.Cost / unit * transformSeconds(params)
}

const transformsTimed = 16

func transformSeconds(params ckks.Parameters) float64 {
	ring := params.RingQ().SubRings[0]
	values := make([]uint64, ring.N)
	ring.NTT(values, values) // the first one finds nothing in caches
	start := time.Now()
	for range transformsTimed {
		ring.NTT(values, values)
	}
	return time.Since(start).Seconds() / transformsTimed
}

// session is what another client adds.
func (s *Served) session() int64 {
	if s.Terms.Scenario == EncryptedModel {
		return s.Plan.OwnerSession()
	}
	return s.Plan.Memory().Session()
}
