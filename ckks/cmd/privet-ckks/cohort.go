package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/cohort"
	"privet/ckks/internal/program"
	"privet/ckks/internal/session"
)

func setup(j job) (*cohort.Setup, error) {
	public, err := os.ReadFile(filepath.Join(j.Program, "program.json"))
	if err != nil {
		return nil, err
	}
	return cohort.NewSetup(public, j.Members, j.Statistical)
}

// coordinate serves a cohort until standard input closes; it has the public half of the program alone.
func coordinate(j job) error {
	s, err := setup(j)
	if err != nil {
		return err
	}
	limit := room(j)
	need := s.Fit(limit)
	if limit > 0 && need > limit {
		return fmt.Errorf("coordinating %s takes about %d MB, more than the limit of %d MB: give more memory, or a smaller batch",
			s.Program.Model, need/1e6, limit/1e6)
	}
	listener, err := listen(j)
	if err != nil {
		return err
	}
	server := &cohort.Server{Setup: s, Timeout: timeout(j), Notify: emitEvent}
	orders := func() { _, _ = io.Copy(io.Discard, os.Stdin) }
	if j.Scheduled {
		gate := newGate()
		server.Gate, server.Notify, orders = gate, gate.follow, func() { gate.readOrders(os.Stdin) }
	}
	emit("listening", map[string]any{
		"port": portOf(listener), "memory": session.Resident(), "needs": need, "cpu_seconds": session.ProcessorSeconds(),
		"seconds": session.EvaluationSeconds(s.Plan, s.Params),
	})
	return runUntil(orders, listener, server.Run)
}

// join is one member of a cohort.
func join(j job) error {
	s, err := setup(j)
	if err != nil {
		return err
	}
	var weights *program.Weights
	if j.Member == 0 {
		private, err := os.ReadFile(filepath.Join(j.Program, "weights.safetensors"))
		if err != nil {
			return err
		}
		if weights, err = program.ParseWeights(private, s.Program); err != nil {
			return err
		}
	}
	role := fmt.Sprintf("member-%d", j.Member)
	own, err := channel.LoadCredentials(j.Keys, role)
	if err != nil {
		return err
	}
	link, err := dial(j, role)
	if err != nil {
		return err
	}
	defer link.Close()
	meter := session.Begin(link)
	var offline session.Cost
	begun := func() {
		// The time until then was spent waiting.
		meter = meter.Restarted()
		emit("begun", nil)
	}
	bits, err := cohort.Member(link, own, s, j.Member, weights, begun, func() { offline = meter.End() })
	if err != nil {
		session.GiveUp(link, err)
		return err
	}
	emit("helped", map[string]any{"cost": meter.End(), "offline": offline, "statistical_bits": bits})
	return nil
}

// inferWithCohort is a client of a cohort.
func inferWithCohort(j job) error {
	s, err := setup(j)
	if err != nil {
		return err
	}
	inputs, err := readInputs(j.Inputs, s.Program, s.Network)
	if err != nil {
		return err
	}
	own, err := channel.LoadCredentials(j.Keys, "client")
	if err != nil {
		return err
	}
	link, err := dial(j, "client")
	if err != nil {
		return err
	}
	defer link.Close()
	offline := session.Begin(link)
	var online session.Meter
	outputs, err := cohort.Client(link, own, s, inputs, func() {
		emit("prepared", map[string]any{"cost": offline.End()})
		online = session.Begin(link)
	})
	if err != nil {
		return err
	}
	cost := online.End()
	if err := writeOutputs(j.Result, outputs); err != nil {
		return err
	}
	emit("result", map[string]any{
		"online": cost, "program_hash": s.Program.Hash, "plan": s.Summary(), "server": link.Peer(),
	})
	return nil
}

func dial(j job, role string) (*channel.Channel, error) {
	if j.Socket != "" {
		return channel.DialLocal(j.Socket, timeout(j))
	}
	credentials, err := channel.LoadCredentials(j.Keys, role)
	if err != nil {
		return nil, err
	}
	return channel.Dial(net.JoinHostPort(host, strconv.Itoa(j.Port)), host, credentials, timeout(j))
}
