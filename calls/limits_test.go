package calls

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/selvage/selvage/fabric"
)

// TestAccounts shows which accounts the calls of each kind of token count against.
func TestAccounts(t *testing.T) {
	for name, tt := range map[string]struct {
		token fabric.Token
		want  []account
	}{
		"a subscriber's token": {fabric.Token{Kind: fabric.SAT, ID: "1", SubscriberID: "alice"},
			[]account{{id: "alice"}}},
		"a subscriber's invite": {fabric.Token{Kind: fabric.Invite, ID: "2", SubscriberID: "alice"},
			[]account{{id: "alice"}}},
		"a backend's guest token": {fabric.Token{Kind: fabric.Guest, ID: "3", KeyID: "key"}, []account{{id: "3"}}},
		"an embed key's guest token": {fabric.Token{Kind: fabric.Guest, ID: "4", KeyID: "embed", Embedded: true},
			[]account{{id: "4"}, {id: "embed", embed: true}}},
	} {
		if got := accountsOf(tt.token); !slices.Equal(got, tt.want) {
			t.Errorf("%s counts for %v, want %v", name, got, tt.want)
		}
	}
}

// TestHoldersForgotten shows that accounts without calls are forgotten, no matter how many they
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
			t.Errorf("%d accounts are known, want those of the last seconds", n)
		}
	})
}
