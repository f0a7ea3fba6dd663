// Package cohort is what the parties of scenario 3 say to each other: a coordinator that evaluates, members that share the
// secret key, one of them with the weights, and a client with data. Model and data are encrypted under the cohort's key.
//
// The coordinator is the hub; it has no secret and sees ciphertexts, shares and public keys only. The order of messages is
// fixed by the plan, which every party derives from the public half of the program.
package cohort

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/network"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/program"
	"privet/ckks/internal/session"
	"privet/ckks/internal/wire"
)

// Setup is what all parties know.
type Setup struct {
	session.Arranged
	Members int
	// Light says that results are flooded lightly. All parties must mean the same; the coordinator decides.
	Light bool
	// Streamed says that the coordinator gets each layer of the model when it evaluates it. It alone chooses.
	Streamed bool
}

// Fit has a coordinator stream the model if it has no room for all of it, and gives the memory that it then takes.
func (s *Setup) Fit(limit int64) int64 {
	need := s.Plan.CohortMemory()
	if limit > 0 && need > limit {
		s.Streamed = true
		return s.Plan.StreamedMemory()
	}
	return need
}

// NewSetup plans a program's public half for a cohort. Results are flooded statistically, or, for models whose noise leaves
// no room for that, lightly.
func NewSetup(public []byte, members int, statistical bool) (*Setup, error) {
	parsed, err := program.Parse(public)
	if err != nil {
		return nil, err
	}
	structure, err := network.Build(parsed, nil)
	if err != nil {
		return nil, err
	}
	structure = structure.WithBareSquares()
	var planned *plan.Plan
	if statistical {
		planned, err = plan.Shared(structure, members, 0, members)
	} else {
		planned, err = plan.Refreshed(structure, plan.Refresh{Members: members})
	}
	if err != nil {
		return nil, err
	}
	params, err := planned.Set.Build()
	if err != nil {
		return nil, err
	}
	arranged := session.Arranged{Program: parsed, Network: planned.Arrange(structure), Plan: planned, Params: params}
	return &Setup{Arranged: arranged, Members: members, Light: !statistical}, nil
}

// rotations are the plan's rotations in the order in which their keys are made.
func (s *Setup) rotations() []int { return slices.Sorted(maps.Keys(s.Plan.Rotations)) }

// hello is how a party introduces itself.
type hello struct {
	Role    string `json:"role"`
	Member  int    `json:"member"`
	Members int    `json:"members"`
	Program string `json:"program"`
	Light   bool   `json:"light,omitempty"`
}

// hello is what a party of this setup says; a client is no member, and counts as 0.
func (s *Setup) hello(role string, member int) hello {
	return hello{role, member, s.Members, s.Program.Hash, s.Light}
}

const (
	roleMember = "member"
	roleClient = "client"
	maxHello   = 1024
)

// blame names the member that an error is about and keeps its family.
func blame(member int, err error) error {
	text := fmt.Sprintf("member %d: %v", member, err)
	if known, ok := err.(*channel.Error); ok {
		return &memberError{member, &channel.Error{Family: known.Family, Text: strings.TrimSuffix(text, known.Said), Said: known.Said}}
	}
	return &memberError{member, channel.Misbehaviour(text)}
}

// memberError is an error that a member is to blame for.
type memberError struct {
	member int
	error
}

// Unwrap gives the error with its family.
func (e *memberError) Unwrap() error { return e.error }

// results are the output nodes that the ciphertexts of one inference's results belong to, in order: group by group.
func (s *Setup) results() []int { return slices.Repeat(s.Outputs(), s.Plan.Groups) }

func receivePublicKey(c *channel.Channel, params ckks.Parameters) (*rlwe.PublicKey, error) {
	data, err := c.Receive(wire.QPBytes(params, 2))
	if err != nil {
		return nil, err
	}
	key := rlwe.NewPublicKey(params)
	return key, wire.ReadQP(data, params, key.Value...)
}
