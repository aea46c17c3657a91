package fabric

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/selvage/selvage/internal/fuzzcost"
)

// fullToken returns a token with every member set.
func fullToken(t *testing.T) Token {
	t.Helper()
	var token Token
	v := reflect.ValueOf(&token).Elem()
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue
		}
		switch field := v.Field(i); field.Interface().(type) {
		case string, TokenKind:
			field.SetString(fmt.Sprintf("member %d", i))
		case int64:
			field.SetInt(int64(i))
		case bool:
			field.SetBool(true)
		case []string:
			field.Set(reflect.ValueOf([]string{newID(), "", fmt.Sprint(i)}))
		case time.Time:
			field.Set(reflect.ValueOf(time.UnixMicro(int64(i)).UTC()))
		default:
			t.Fatalf("the test has no value for the member %s", v.Type().Field(i).Name)
		}
	}

	token.SealedBy = "" // set when a token is opened, and not part of the claims
	return token
}

// TestClaims shows that encoding and decoding keep every member of a token. Truncated and extended
// data is rejected.
func TestClaims(t *testing.T) {
	ids := Token{
		ID:        newID(),
		ProjectID: strings.ToUpper(newID()),
		FamilyID:  "{" + newID()[:34] + "}",
		KeyID:     strings.Repeat("k", 300),
	}
	for _, token := range []Token{fullToken(t), ids, {}} {
		raw, err := (&claims{token}).MarshalBinary()
		if err != nil {
			t.Fatalf("writing %+v: %v", token, err)
		}
		var got claims
		if err := got.UnmarshalBinary(raw); err != nil {
			t.Fatalf("reading %+v: %v", token, err)
		}

		if diff := cmp.Diff(token, got.Token, cmp.AllowUnexported(Token{})); diff != "" {
			t.Errorf("encoding and decoding changed the claims (-want +got):\n%s", diff)
		}
		for n := range raw {
			if err := new(claims).UnmarshalBinary(raw[:n]); err == nil {
				t.Errorf("reading the first %d of %d bytes: got nil, want an error", n, len(raw))
			}
		}
		if err := new(claims).UnmarshalBinary(append(raw, 0)); err == nil {
			t.Error("reading an additional byte: got nil, want an error")
		}
	}
}

func FuzzClaims(f *testing.F) {
	seed := claims{Token{Kind: SAT, ID: newID(), Scope: []string{"a"}}}
	raw, err := seed.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte{claimsVersion, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add(bytes.Repeat([]byte{claimsVersion, 1, 1, 0xff}, 1<<12))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var first claims
		var err error
		fuzzcost.Parser.Check(t, len(raw), func() {
			first = claims{}
			err = first.UnmarshalBinary(raw)
		})
		if err != nil {
			return
		}

		written, err := first.MarshalBinary()
		if err != nil {
			t.Fatalf("writing %+v, read from %x: %v", first.Token, raw, err)
		}
		var second claims
		if err := second.UnmarshalBinary(written); err != nil {
			t.Fatalf("reading what was written for %+v: %v", first.Token, err)
		}
		if diff := cmp.Diff(first.Token, second.Token, cmp.AllowUnexported(Token{})); diff != "" {
			t.Errorf("%x was read, written and read again (-first +second):\n%s", raw, diff)
		}
	})
}
