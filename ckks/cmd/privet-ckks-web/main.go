//go:build js

// Command privet-ckks-web is the client of suite ckks in a browser, compiled to WebAssembly: it makes `privetCkks`, whose
// functions return promises. `open(address, hash, light)` ends the session before, connects a WebSocket and plans the
// program, `prepare()` makes a key and sends evaluation keys, `predict(sample)` takes a Float64Array and gives scores,
// `close()` ends the session.
//
// The secret key stays in this module's memory. Its randomness is the browser's `crypto.getRandomValues`.
package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"runtime/debug"
	"syscall/js"
	"time"

	"privet/ckks/internal/browser"
	"privet/ckks/internal/channel"
)

// Memory may grow by so much between two collections, as in the program of the other parties; a message is waited for so
// long.
const (
	collectPercent = 25
	patience       = 2 * time.Minute
)

var errClosed = errors.New("there is no session: open one first")

// client is the session that is open; nil without one.
var client *browser.Client

func main() {
	debug.SetGCPercent(collectPercent)
	js.Global().Set("privetCkks", map[string]any{
		"open":    function(open),
		"prepare": function(prepare),
		"predict": function(predict),
		"close":   function(closeSession),
	})
	select {}
}

func open(arguments []js.Value) (any, error) {
	// Its key goes, and the service keeps nothing for it. One that has broken off needs no farewell.
	_, _ = closeSession(nil)
	conn, err := dial(arguments[0].String(), patience)
	if err != nil {
		return nil, err
	}
	opened, facts, err := browser.Open(channel.Over(conn, patience), arguments[1].String(), arguments[2].Bool())
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	client = opened
	return facts, nil
}

func prepare([]js.Value) (any, error) {
	if client == nil {
		return nil, errClosed
	}
	return client.Prepare()
}

func predict(arguments []js.Value) (any, error) {
	if client == nil {
		return nil, errClosed
	}
	scores, cost, err := client.Predict(reals(arguments[0]))
	return map[string]any{"scores": scores, "cost": cost}, err
}

func closeSession([]js.Value) (any, error) {
	if client == nil {
		return nil, nil
	}
	open := client
	client = nil
	return nil, open.Close()
}

// reals copies a Float64Array.
func reals(array js.Value) []float64 {
	data := make([]byte, array.Get("byteLength").Int())
	view := js.Global().Get("Uint8Array").New(array.Get("buffer"), array.Get("byteOffset"), len(data))
	js.CopyBytesToGo(data, view)
	values := make([]float64, len(data)/8)
	_, _ = binary.Decode(data, binary.LittleEndian, values) // as many as there are bytes for
	return values
}

// function is a JavaScript function that returns a promise of what `work` gives, as an object.
func function(work func([]js.Value) (any, error)) js.Func {
	return js.FuncOf(func(_ js.Value, arguments []js.Value) any {
		var executor js.Func
		executor = js.FuncOf(func(_ js.Value, callbacks []js.Value) any {
			// What runs here must not wait; a goroutine may.
			go func() {
				defer executor.Release()
				answer(work, arguments, callbacks[0], callbacks[1])
			}()
			return nil
		})
		return js.Global().Get("Promise").New(executor)
	})
}

func answer(work func([]js.Value) (any, error), arguments []js.Value, resolve, reject js.Value) {
	result, err := work(arguments)
	if err == nil {
		var text []byte
		if text, err = json.Marshal(result); err == nil {
			resolve.Invoke(js.Global().Get("JSON").Call("parse", string(text)))
			return
		}
	}
	reject.Invoke(js.Global().Get("Error").New(err.Error()))
}
