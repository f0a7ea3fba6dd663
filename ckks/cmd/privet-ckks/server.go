package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"privet/ckks/internal/channel"
	"privet/ckks/internal/session"
)

// serve serves one program until standard input closes.
func serve(j job) error {
	served, err := load(j)
	if err != nil {
		return err
	}
	listener, err := listen(j)
	if err != nil {
		return err
	}
	server := &session.Server{
		Served: served, Timeout: timeout(j), Limit: j.Memory, Notify: emitEvent,
	}
	orders := func() { _, _ = io.Copy(io.Discard, os.Stdin) }
	if j.Scheduled {
		gate := newGate()
		server.Gate, server.Notify, orders = gate, gate.follow, func() { gate.readOrders(os.Stdin) }
	}
	emit("listening", map[string]any{
		"port":   portOf(listener),
		"memory": session.Resident(),
		"needs":  served.Needs(),
		"model":  served.Program.Model, "program_hash": served.Program.Hash, "statistical_bits": served.Strength,
		"statistical_bits_any_input": served.StrengthAnyInput,
		// What planning and encoding the weights took, once for all clients.
		"cpu_seconds": session.ProcessorSeconds(),
		// What a group takes on one processor, about.
		"seconds": served.Seconds(),
	})
	return runUntil(orders, listener, server.Run)
}

// runUntil runs a server at a listener until there are no more orders.
func runUntil(orders func(), listener *channel.Listener, run func(*channel.Listener) error) error {
	done := make(chan error, 1)
	go func() { done <- run(listener) }()
	go func() {
		orders()
		listener.Close()
	}()
	return <-done
}

// host is this machine: from others, parties come through the relay of a service.
const host = "127.0.0.1"

// listen is at a Unix socket for a relay, or at a port for clients with certificates.
func listen(j job) (*channel.Listener, error) {
	if j.Socket != "" {
		return channel.ListenLocal(j.Socket)
	}
	credentials, err := channel.LoadCredentials(j.Keys, "server")
	if err != nil {
		return nil, err
	}
	return channel.Listen(net.JoinHostPort(host, strconv.Itoa(j.Port)), credentials)
}

func portOf(listener *channel.Listener) int {
	if address, ok := listener.Addr().(*net.TCPAddr); ok {
		return address.Port
	}
	return 0
}

func load(j job) (*session.Served, error) {
	public, err := os.ReadFile(filepath.Join(j.Program, "program.json"))
	if err != nil {
		return nil, err
	}
	private, err := os.ReadFile(filepath.Join(j.Program, "weights.safetensors"))
	if err != nil {
		return nil, err
	}
	return session.Serve(public, private, terms(j), room(j))
}

// room is the memory that a party may take: the job says, or what the machine has left.
func room(j job) int64 {
	if j.Memory > 0 {
		return j.Memory
	}
	return session.Available()
}

func emitEvent(event session.Event) {
	fields := map[string]any{"model": event.Model, "cost": event.Cost, "layers": event.Layers}
	if event.Err != nil {
		fields = failure(event.Err)
		fields["message"] = channel.Unquoted(event.Err)
	}
	fields["client"], fields["session"] = event.Peer, event.Session
	emit(event.Kind, fields)
}

func timeout(j job) time.Duration {
	if j.Timeout <= 0 {
		return 2 * time.Minute
	}
	return time.Duration(j.Timeout * float64(time.Second))
}
