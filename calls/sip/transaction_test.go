package sip

import (
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/emiago/sipgo/sip"
)

// TestAnswerWithin shows how long a request waits for its first response. While a phone rings, the server
// waits longer.
func TestAnswerWithin(t *testing.T) {
	for _, tt := range []struct {
		method  sip.RequestMethod
		limit   time.Duration
		isHeard bool
		want    time.Duration
	}{
		{sip.INVITE, answerWithin, false, answerWithin},
		{sip.REGISTER, answerWithin, false, answerWithin},
		{sip.BYE, byeEnd, false, byeEnd},
		{sip.BYE, byeEnd, true, byeEnd},
		{sip.INVITE, answerWithin, true, calledFor},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Config{AddressFor: func(a netip.Addr) netip.Addr { return a }})
			f := flow{tcp: newStream(nil), remote: netip.MustParseAddrPort("192.0.2.1:5060")}
			r := s.newRequest(tt.method, sip.Uri{Host: "sip.example.org"}, f)
			answers := make(chan *sip.Response, 1)
			began := time.Now()
			tx := s.request(r, f, tt.limit, func(answer *sip.Response) { answers <- answer })

			if tt.isHeard {
				tx.receive(sip.NewResponse(100, "Trying"))
				<-answers
			}
			if answer := <-answers; answer != nil {
				t.Errorf("the %s got %s, want no answer", tt.method, answer)
			}
			if waited := time.Since(began); waited != tt.want {
				t.Errorf("the %s waited %s, want %s", tt.method, waited, tt.want)
			}
		})
	}
}

// TestSlowAfter shows when a gateway that has not responded to an INVITE counts as slow. A gateway that has
// responded is not slow.
func TestSlowAfter(t *testing.T) {
	for _, isHeard := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := New(Config{AddressFor: func(a netip.Addr) netip.Addr { return a }})
			f := flow{tcp: newStream(nil), remote: netip.MustParseAddrPort("192.0.2.1:5060")}
			var slow []time.Duration
			began := time.Now()

			tx := &clientTx{
				server:  s,
				request: s.newRequest(sip.INVITE, sip.Uri{Host: "sip.example.org"}, f),
				flow:    f,
				limit:   answerWithin,
				handle:  func(*sip.Response) {},
				slow: func() bool {
					slow = append(slow, time.Since(began))
					return false
				},
			}
			tx.begin()
			want := []time.Duration{slowAfter}
			if isHeard {
				tx.receive(sip.NewResponse(100, "Trying"))
				want = nil
			}
			time.Sleep(calledFor + time.Second) // the clock of synctest
			synctest.Wait()
			if !slices.Equal(slow, want) {
				t.Errorf("the gateway was slow after %v, want %v", slow, want)
			}
		})
	}
}
