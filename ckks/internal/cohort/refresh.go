package cohort

import (
	"fmt"
	"slices"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/collective"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/flood"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/wire"
)

// refreshes are those of one run, one for each ciphertext: node by node, and of each node group by group.
func (s *Setup) refreshes() []plan.Point {
	var found []plan.Point
	for points := s.Plan.Points(); len(points) > 0; {
		var group []plan.Point
		for node := points[0].Node; len(points) > 0 && points[0].Node == node; points = points[1:] {
			group = append(group, slices.Repeat(points[:1], s.Plan.Layouts[node].Ciphertexts)...)
		}
		found = append(found, slices.Repeat(group, s.Plan.Groups)...)
	}
	return found
}

// refreshName is the label that a refresh's common polynomial grows from: each has its own.
func refreshName(count int) string { return fmt.Sprint(count) }

// refresher has members refresh ciphertexts: collective bootstrapping.
type refresher struct {
	hub  *hub
	done int
}

// Refresh asks every member for its shares, side by side, and names the member that fails; nothing is asked twice.
func (r *refresher) Refresh(node int, values evaluate.Values, level int) (evaluate.Values, error) {
	h := r.hub
	floor := h.setup.Plan.Floor
	size := h.sums.RefreshSize(floor, level)
	shares := make([][][]byte, len(values))
	for i := range shares {
		shares[i] = make([][]byte, len(h.members))
	}
	err := h.each(func(member int, link *channel.Channel) error {
		for i, ct := range values {
			err := link.Send(wire.AppendPolys(nil, h.setup.Params, floor, ct.Value[1]))
			if err == nil {
				shares[i][member], err = link.Receive(size)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	made := make(evaluate.Values, len(values))
	for i, ct := range values {
		if made[i], err = h.sums.Refresh(refreshName(r.done), ct, level, h.setup.Plan.Period(node), shares[i]); err != nil {
			return nil, channel.Misbehaviour(err.Error())
		}
		shares[i] = nil
		r.done++
	}
	return made, nil
}

// evaluating is a member's part in an evaluation, node by node: the owner of the model sends what `next` is, and all help
// with as many refreshes as the plan has, and no more.
func evaluating(c *channel.Channel, s *Setup, m *collective.Member, next func() error) error {
	done, all := 0, s.refreshes()
	for index := range s.Network.Nodes {
		if err := next(); err != nil {
			return err
		}
		for ; done < len(all) && all[done].Node == index; done++ {
			if err := refresh(c, s, m, refreshName(done), all[done]); err != nil {
				return err
			}
		}
	}
	return nil
}

// refresh is a member's part in one refresh.
func refresh(c *channel.Channel, s *Setup, m *collective.Member, name string, asked plan.Point) error {
	data, err := c.Receive(wire.PolysBytes(s.Params, s.Plan.Floor, 1))
	if err != nil {
		return err
	}
	second := s.Params.RingQ().AtLevel(s.Plan.Floor).NewPoly()
	if err := wire.ReadPolys(data, s.Params, s.Plan.Floor, second); err != nil {
		return err
	}
	noise := flood.New(s.Plan.RefreshDeviation(asked.Node, asked.Value), s.Plan.Period(asked.Node))
	return c.Deliver(m.Refresh(name, second, asked.Level, noise))
}
