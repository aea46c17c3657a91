package fabrictest

import (
	"testing"

	"github.com/selvage/selvage/fabric"
)

func TestSubscriberOf(t *testing.T) {
	f, p := projectOf(t)
	email := "ada@example.com"
	ada, err := f.Subscribers.Create(t.Context(), p.ID, fabric.SubscriberInput{Email: &email})
	if err != nil {
		t.Fatal(err)
	}

	tests := []struct{ path, want string }{
		{"/private/ada", ada.ID},
		{"/private/ada?channel=audio", ada.ID},
		{"+15550100", ""},
		{"/public/ada", ""},
		{"/private/eve", ""},
		{"ada", ""},
		{"", ""},
		{"/private/\x00", ""},
		{"/", ""},
	}
	for _, tt := range tests {
		got, err := f.Addresses.SubscriberOf(t.Context(), p.ID, tt.path)
		if err != nil || got != tt.want {
			t.Errorf("SubscriberOf(%q) = %q, %v, want %q", tt.path, got, err, tt.want)
		}
	}
}
