package oidc

import (
	"net/url"
	"reflect"
	"testing"
)

// TestParseForm shows that parseForm returns the same result as url.ParseQuery, with or without its
// fast path.
func TestParseForm(t *testing.T) {
	for _, body := range []string{
		"", "&", "a", "a=", "=", "=b", "a=b", "a=b&a=c", "&a=b&&c=d&", "a=b=c", "token=eyJ..x-_~&client_id=x",
		"a=\x00\xff", "a=b c",
		"a=%41", "%61=b", "a+b=c+d", "a=%", "a=%4", "a;b=c", "a=b;c=d", "a=b&c=%zz",
	} {
		got, err := parseForm(body)
		want, wantErr := url.ParseQuery(body)
		if (err == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want) {
			t.Errorf("parseForm(%q) = %v, %v, want %v, %v", body, got, err, want, wantErr)
		}
	}
}
