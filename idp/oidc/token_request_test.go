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
		if failed, wantFailed := err != nil, wantErr != nil; failed != wantFailed {
			t.Errorf("parseForm(%q) returns the error %v, want %v", body, err, wantErr)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("parseForm(%q) = %v, want %v", body, got, want)
		}
	}
}
