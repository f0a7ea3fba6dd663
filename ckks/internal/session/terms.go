package session

import (
	"fmt"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/network"
	"privet/ckks/internal/params"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/program"
)

// Terms are on what a server offers its models.
type Terms struct {
	// Scenario is EncryptedData or EncryptedModel.
	Scenario string `json:"scenario"`
	// Statistical says that results are flooded until they tell nothing else of the weights. It is not a choice with an
	// encrypted model, whose results always are.
	Statistical bool `json:"statistical"`
}

// Scenarios.
const (
	EncryptedData  = "encrypted-data"
	EncryptedModel = "encrypted-model"
)

// check refuses terms that do not exist.
func (t Terms) check() error {
	if t.Scenario != EncryptedData && t.Scenario != EncryptedModel {
		return fmt.Errorf("there is no scenario %q", t.Scenario)
	}
	return nil
}

// arranged is a program as it is evaluated on some terms.
type arranged struct {
	Arranged
	Terms Terms
}

func arrange(public []byte, terms Terms) (*arranged, error) {
	if err := terms.check(); err != nil {
		return nil, channel.Misbehaviour(err.Error())
	}
	parsed, err := program.Parse(public)
	if err != nil {
		return nil, channel.Misbehaviour(err.Error())
	}
	a := &arranged{Arranged{Program: parsed}, terms}
	if a.Network, err = a.build(nil); err != nil {
		return nil, err
	}
	if a.Plan, err = terms.plan(a.Network); err != nil {
		return nil, err
	}
	a.Network = a.Plan.Arrange(a.Network)
	a.Params, err = a.Plan.Set.Build()
	return a, err
}

// plan plans a network. An encrypted model is evaluated without a word from its owner, unless no ring has room for that or
// oblivious refreshes, a round trip each, at least halve the work.
func (t Terms) plan(n *network.Network) (*plan.Plan, error) {
	if t.Scenario == EncryptedData && !t.Statistical {
		return plan.New(n)
	}
	made, err := plan.Shared(n, 1, params.Decryptions, 0)
	if t.Scenario == EncryptedData {
		if err != nil {
			err = orLight(err)
		}
		return made, err
	}
	refreshed, failure := plan.Shared(n, 1, params.Decryptions, 1)
	if err != nil {
		return refreshed, failure
	}
	if failure == nil && 2*refreshed.Cost < made.Cost {
		return refreshed, nil
	}
	return made, nil
}

// orLight is a refusal under statistical noise, with the way out.
func orLight(err error) error {
	return fmt.Errorf("%w; or, on both sides, ask for less noise, which is weaker: --flooding light", err)
}

// Plan is how a program of which only the public half is known would be evaluated on the terms.
func (t Terms) Plan(public []byte) (*plan.Plan, error) {
	made, err := arrange(public, t)
	if err != nil {
		return nil, err
	}
	return made.Plan, nil
}

// build is the network on the terms, with weights or (nil) without, as it is planned if it is.
func (a *arranged) build(weights *program.Weights) (*network.Network, error) {
	made, err := network.Build(a.Program, weights)
	if err != nil || a.Terms.Scenario == EncryptedData {
		return made, err
	}
	made = made.WithBareSquares()
	made.Known = true
	if a.Plan != nil {
		made = a.Plan.Arrange(made)
	}
	return made, nil
}
