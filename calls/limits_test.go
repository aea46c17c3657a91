package calls

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/internal/problem"
)

// TestAccounts shows which accounts the calls of each kind of token count against.
func TestAccounts(t *testing.T) {
	for name, tt := range map[string]struct {
		token   fabric.Token
		gateway bool
		want    []account
	}{
		"a subscriber's token": {
			token: fabric.Token{Kind: fabric.SAT, ID: "1", SubscriberID: "alice"},
			want:  []account{{id: "alice"}},
		},
		"a subscriber's invite": {
			token: fabric.Token{Kind: fabric.Invite, ID: "2", SubscriberID: "alice"},
			want:  []account{{id: "alice"}},
		},

		"a backend's guest token": {
			token: fabric.Token{Kind: fabric.Guest, ID: "3", KeyID: "key"},
			want:  []account{{id: "3"}},
		},
		"an embed key's guest token": {
			token: fabric.Token{Kind: fabric.Guest, ID: "4", KeyID: "embed", Embedded: true},
			want:  []account{{id: "4"}, {id: "embed", embed: true}},
		},
		"a caller behind a gateway": {
			token:   fabric.Token{Kind: fabric.Guest, ID: "5", KeyID: "g", Embedded: true},
			gateway: true,
			want:    []account{{id: "5"}, {id: "g", gateway: true}},
		},
	} {
		client := Client{Token: tt.token, Socket: Socket{Gateway: tt.gateway}}
		if got := accountsOf(client); !slices.Equal(got, tt.want) {
			t.Errorf("%s counts against %v, want %v", name, got, tt.want)
		}
	}
}

// TestIdleAccountsForgotten shows that accounts without calls are forgotten, no matter how many
// there are.
func TestIdleAccountsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{})
		for i := range 10_000 {
			caller := Client{Token: fabric.Token{SubscriberID: fmt.Sprint("caller", i)}}
			if err := c.counts().admitCall(caller); err != nil {
				t.Fatal(err)
			}

			callee := account{id: fmt.Sprint("callee", i)}
			addLegs(c, callee, 1)
			addLegs(c, callee, -1)
			time.Sleep(20 * time.Millisecond) // at this rate, fifty callers dial within a second
		}

		if n := countAccounts(c); n > 200 {
			t.Errorf("%d accounts are known, want at most 200", n)
		}
	})
}

// These limits of a gateway are low enough for a test to reach them.
const (
	gatewayRunning   = 300
	gatewayPerSecond = 25
	gatewayBurst     = 10 * gatewayPerSecond // see GatewayLimits
)

// newGatewayCalls returns Calls whose gateways have the limits above.
func newGatewayCalls() *Calls {
	return New(Config{Limits: Limits{
		PerProject: -1,
		Gateway:    GatewayLimits{Running: gatewayRunning, PerSecond: gatewayPerSecond},
	}})
}

// gatewayCaller returns a caller behind the gateway "g". Each caller has its own token, so
// only the gateway's limits apply to all callers together.
func gatewayCaller(id int) Client {
	return Client{
		Token:  fabric.Token{Kind: fabric.Guest, ID: fmt.Sprint(id), KeyID: "g", Embedded: true},
		Socket: Socket{Gateway: true},
	}
}

// TestGatewayLimits shows how many calls a gateway may begin at once, how many it may begin in each
// following second, and how many may run at the same time.
func TestGatewayLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGatewayCalls()
		callers := 0
		beginCalls := func() (begun int) { // begins calls until one is refused
			for {
				callers++
				if c.counts().admitCall(gatewayCaller(callers)) != nil {
					return begun
				}
				addLegs(c, account{id: "g", gateway: true}, 1)
				begun++
			}
		}

		for _, step := range []struct {
			when string
			want int
		}{
			{"at once", gatewayBurst},
			{"after a second", gatewayPerSecond},
			{"after two seconds", gatewayRunning - gatewayBurst - gatewayPerSecond},
			{"while the maximum number of calls is running", 0},
		} {
			if n := beginCalls(); n != step.want {
				t.Errorf("%s, the gateway can begin %d calls, want %d", step.when, n, step.want)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestGatewayWrongAddresses shows that all calls that a gateway begins may be to addresses that
// cannot be called.
func TestGatewayWrongAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newGatewayCalls()
		callers := 0
		for _, calls := range []int{gatewayBurst, gatewayPerSecond, gatewayPerSecond} {
			for range calls {
				callers++
				caller := gatewayCaller(callers)
				if err := c.counts().admitCall(caller); err != nil {
					t.Fatalf("caller %d may not dial: %v", callers, err)
				}
				if err := c.counts().admitRejected(caller); err != nil {
					t.Fatalf("caller %d may not dial a wrong address: %v", callers, err)
				}
			}
			time.Sleep(time.Second)
		}
	})
}

// TestRefreshedToken shows that a guest does not get new limits by refreshing its token.
func TestRefreshedToken(t *testing.T) {
	c := New(Config{Limits: Limits{PerHolder: 1}})
	guest := Client{Token: fabric.Token{Kind: fabric.Guest, ID: "1", FamilyID: "family", ProjectID: "p"}}
	addLegs(c, accountsOf(guest)[0], 1)

	guest.Token.ID = "2" // as after a refresh
	if err := c.CheckLimits(guest); !errors.Is(err, problem.RateLimited) {
		t.Errorf("with a new token, dialing once more returns %v, want %v", err, problem.RateLimited)
	}
}

// addLegs adds n to the number of an account's legs. n may be negative.
func addLegs(c *Calls, a account, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts().activityOf(a).legs += n
}

// countAccounts returns the number of accounts that c has not forgotten.
func countAccounts(c *Calls) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.accounts)
}
