package idp

import (
	"encoding"
	"encoding/json"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// fill sets every member of a struct, and of the structs in it, to a value other than zero.
func fill(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.UnixMicro(1_700_000_000_123_456).UTC()))
	case v.Kind() == reflect.String:
		v.SetString("text of " + v.Type().String())
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(7)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}

// binaryForm is a value with a binary form.
type binaryForm interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// checkSealed checks that encoding and decoding keep a value. Extended data and other versions are
// rejected. The JSON of earlier versions is still accepted.
func checkSealed(t *testing.T, value binaryForm, empty func() binaryForm) {
	t.Helper()
	raw, err := value.MarshalBinary()
	if err != nil {
		t.Fatalf("encoding %+v: %v", value, err)
	}
	wantDecoded(t, empty(), raw, value)

	if empty().UnmarshalBinary(append(raw, 0)) == nil {
		t.Error("an additional byte is accepted")
	}
	if empty().UnmarshalBinary(append([]byte{sealedVersion + 1}, raw[1:]...)) == nil {
		t.Error("another version is accepted")
	}

	old, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	wantDecoded(t, empty(), old, value)
}

// wantDecoded decodes data into got, which must then equal want.
func wantDecoded(t *testing.T, got binaryForm, data []byte, want binaryForm) {
	t.Helper()
	if err := got.UnmarshalBinary(data); err != nil {
		t.Fatalf("decoding %q: %v", data, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decoding %q changes the content (-want +got):\n%s", data, diff)
	}
}

// TestSealedCode shows that a code keeps everything that is needed to redeem it.
func TestSealedCode(t *testing.T) {
	var whole sealedCode
	fill(reflect.ValueOf(&whole).Elem())
	whole.Request = whole.Request.redeemable()
	empty := func() binaryForm { return new(sealedCode) }
	checkSealed(t, &whole, empty)
	checkSealed(t, &sealedCode{}, empty)

	raw, err := whole.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for n := range raw {
		if new(sealedCode).UnmarshalBinary(raw[:n]) == nil {
			t.Errorf("the first %d of %d bytes are accepted", n, len(raw))
		}
	}
}

// TestSealedRequest shows that a pushed request keeps its parameters.
func TestSealedRequest(t *testing.T) {
	empty := func() binaryForm { return new(pushedRequest) }
	for _, signed := range []bool{false, true} {
		checkSealed(t, &pushedRequest{
			ID:       "id",
			Expires:  time.UnixMicro(1_700_000_000_123_456).UTC(),
			ClientID: "client",
			Params:   url.Values{"scope": {"openid profile"}, "resource": {"a", "b"}, "state": {""}},
			Signed:   signed,
		}, empty)
	}
}
