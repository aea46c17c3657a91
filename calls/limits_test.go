package calls

import (
	"slices"
	"testing"

	"github.com/selvage/selvage/fabric"
)

// TestAccounts shows what the calls of each kind of token count for.
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
