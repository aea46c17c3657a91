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

// whole returns a token with every member set.
func whole(t *testing.T) Token {
	t.Helper()
	var token Token
	v := reflect.ValueOf(&token).Elem()
	for i := range v.NumField() {
		switch f := v.Field(i); {
		case !v.Type().Field(i).IsExported():
		case f.Kind() == reflect.String:
			f.SetString(fmt.Sprintf("member %d", i))
		case f.Kind() == reflect.Int64:
			f.SetInt(int64(i))
		case f.Kind() == reflect.Bool:
			f.SetBool(true)
		case f.Type() == reflect.TypeFor[[]string]():
			f.Set(reflect.ValueOf([]string{newID(), "", fmt.Sprint(i)}))
		case f.Type() == reflect.TypeFor[time.Time]():
			f.Set(reflect.ValueOf(time.UnixMicro(int64(i)).UTC()))
		default:
			t.Fatalf("no value for the member %s", v.Type().Field(i).Name)
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
	for _, token := range []Token{whole(t), ids, {}} {
		raw, err := (&claims{token}).MarshalBinary()
		var got claims
		if err != nil || got.UnmarshalBinary(raw) != nil {
			t.Fatalf("%+v cannot be read: %v", token, err)
		}

		if diff := cmp.Diff(token, got.Token, cmp.AllowUnexported(Token{})); diff != "" {
			t.Errorf("claims changed:\n%s", diff)
		}
		for n := range raw {
			if new(claims).UnmarshalBinary(raw[:n]) == nil {
				t.Errorf("the first %d of %d bytes are accepted", n, len(raw))
			}
		}

		if new(claims).UnmarshalBinary(append(raw, 0)) == nil {
			t.Error("an additional byte is accepted")
		}
	}
}

func FuzzClaims(f *testing.F) {
	raw, _ := (&claims{Token{Kind: SAT, ID: newID(), Scope: []string{"a"}}}).MarshalBinary()
	f.Add(raw)
	f.Add([]byte{claimsVersion, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Add(bytes.Repeat([]byte{claimsVersion, 1, 1, 0xff}, 1<<12))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var c, again claims
		var err error
		fuzzcost.Parser.Check(t, len(raw), func() {
			c = claims{}
			err = c.UnmarshalBinary(raw)
		})
		if err != nil {
			return
		}

		written, err := c.MarshalBinary()
		if err != nil || again.UnmarshalBinary(written) != nil ||
			!cmp.Equal(c.Token, again.Token, cmp.AllowUnexported(Token{})) {
			t.Errorf("%x is read as %+v, which is read as %+v", raw, c.Token, again.Token)
		}
	})
}
