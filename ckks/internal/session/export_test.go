package session

import (
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/plan"

	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// Agree asks the server for something, in turn or not.
func (g *Guest) Agree(what string) error { return g.agree(what) }

// RefreshZeros has zeros refreshed instead of a value.
func (g *Guest) RefreshZeros(point plan.Point) error {
	randomiser, err := evaluate.NewRandomiser(g.params, g.keys.zero)
	if err != nil {
		return err
	}
	values := make(evaluate.Values, g.Plan.Layouts[point.Node].Ciphertexts)
	for i := range values {
		values[i] = ckks.NewCiphertext(g.params, 1, g.Plan.Floor)
	}
	_, err = (&refresher{randomiser, g}).Refresh(point.Node, values, point.Level)
	return err
}

// SendRefresh asks for a refresh of what may be no ciphertext, and waits for what comes of it.
func (g *Guest) SendRefresh(data []byte) error {
	if err := ask(g.channel, request{Request: "refresh", Program: g.Program.Hash}); err != nil {
		return err
	}
	if err := g.channel.Send(data); err != nil {
		return err
	}
	_, err := g.channel.ReceiveUpTo(1)
	return err
}
