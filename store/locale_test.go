package store_test

import (
	"testing"
	"time"

	"github.com/selvage/selvage/fabric"
	"github.com/selvage/selvage/store"
)

// TestChangeLocale shows that a change of the locale keeps the other claims, even those that were
// written after the subscriber was read.
func TestChangeLocale(t *testing.T) { store.EachDatabase(t, testChangeLocale) }

func testChangeLocale(t *testing.T, c store.Config) {
	s, p := fabricRows(t, c)
	sub, address := subscriber(p, "ada@example.com", "", "ada")
	if err := s.CreateSubscriber(t.Context(), sub, address); err != nil {
		t.Fatal(err)
	}

	german := "de"
	for _, tt := range []struct {
		change fabric.SubscriberChange
		want   fabric.StandardClaims
	}{
		{
			change: fabric.SubscriberChange{Locale: &german},
			want:   fabric.StandardClaims{Locale: "de"},
		},
		{
			change: fabric.SubscriberChange{Claims: &fabric.StandardClaims{Nickname: "Countess", Locale: "en"}},
			want:   fabric.StandardClaims{Nickname: "Countess", Locale: "en"},
		},
		{
			change: fabric.SubscriberChange{Locale: &german},
			want:   fabric.StandardClaims{Nickname: "Countess", Locale: "de"},
		},
	} {
		got, err := s.UpdateSubscriber(t.Context(), p.ID, sub.ID, tt.change, time.Now(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got.Claims != tt.want {
			t.Errorf("UpdateSubscriber(%+v) has the claims %+v, want %+v", tt.change, got.Claims, tt.want)
		}
	}
}
