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

// TestHoldersForgotten shows that accounts without calls are forgotten, no matter how many there
// are.
func TestHoldersForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{})
		for i := range 10_000 {
			caller := Client{Token: fabric.Token{SubscriberID: fmt.Sprint("caller", i)}}
			if err := c.counts().admitCall(caller); err != nil {
				t.Fatal(err)
			}
			c.counts().holderOf(account{id: fmt.Sprint("callee", i)})
			time.Sleep(20 * time.Millisecond) // at this rate, fifty callers dial within a second
		}
		if n := len(c.holders); n > 200 {
			t.Errorf("%d accounts are known, want at most 200", n)
		}
	})
}

// TestGatewayLimits shows how many calls a gateway may begin within a second, and at a time. All of
// them may be to addresses that cannot be called. Each caller behind the gateway has its own token.
func TestGatewayLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Config{Limits: Limits{PerProject: -1, Gateway: GatewayLimits{Running: 300, PerSecond: 25}}})
		callers := 0
		admitted := func() (n int) {
			for {
				callers++
				token := fabric.Token{Kind: fabric.Guest, ID: fmt.Sprint(callers), KeyID: "g", Embedded: true}
				caller := Client{Token: token, Socket: Socket{Gateway: true}}
				if c.counts().admitCall(caller) != nil {
					return n
				}
				if err := c.counts().admitRejected(caller); err != nil {
					t.Fatalf("dialing a wrong address: %v", err)
				}
				n++
				c.counts().holderOf(accountsOf(caller)[1]).legs++
			}
		}

		for _, want := range []int{250, 25, 25, 0} {
			if n := admitted(); n != want {
				t.Errorf("%d calls of the gateway were admitted, want %d", n, want)
			}
			time.Sleep(time.Second)
		}
	})
}

// TestRefreshedToken shows that a guest does not get new limits by refreshing its token.
func TestRefreshedToken(t *testing.T) {
	c := New(Config{Limits: Limits{PerHolder: 1}})
	guest := Client{Token: fabric.Token{Kind: fabric.Guest, ID: "1", FamilyID: "family", ProjectID: "p"}}
	c.mu.Lock()
	c.counts().holderOf(accountsOf(guest)[0]).legs++
	c.mu.Unlock()
	guest.Token.ID = "2"
	if err := c.CheckLimits(guest); !errors.Is(err, problem.RateLimited) {
		t.Errorf("with a new token, dialing once more returns %v, want %v", err, problem.RateLimited)
	}
}
