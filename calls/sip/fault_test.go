package sip

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/emiago/sipgo/sip"
)

// TestFault shows that a panic ends neither the goroutine that reads messages nor the process. The
// panic happens while a message is handled, or in a timer.
func TestFault(t *testing.T) {
	var log bytes.Buffer
	s := &Server{log: slog.New(slog.NewTextHandler(&log, nil)), workers: make(chan struct{})}
	close(s.workers) // sending to it panics
	s.receive([]byte(registration), flow{})

	if !strings.Contains(log.String(), "handling a SIP message") {
		t.Errorf("the log is %q, want the panic while handling a SIP message", log.String())
	}

	var fired sync.WaitGroup
	fired.Add(1)
	s.after(0, func() {
		defer fired.Done()
		var none *sip.Request
		_ = none.Recipient
	})
	fired.Wait()
}
