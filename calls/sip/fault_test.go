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
	s := &Server{log: slog.New(slog.NewTextHandler(&log, nil)), rates: newRates()}
	const branch = "z9hG4bKfault"
	s.sent = map[string]*clientTx{branch: {}} // this transaction lacks its request
	s.receive([]byte("SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP h;branch="+branch+"\r\nFrom: <sip:a@b>;tag=1\r\n"+
		"To: <sip:c@d>;tag=2\r\nCall-ID: x\r\nCSeq: 1 INVITE\r\nContent-Length: 0\r\n\r\n"), flow{})

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
