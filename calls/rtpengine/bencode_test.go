package rtpengine

import (
	"reflect"
	"testing"
)

// FuzzDecode shows that decoding never panics. A decoded value stays the same if it is encoded and
// decoded again.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"d6:result4:ponge",
		"d4:tagsd6:clientd6:mediasld5:indexi1eeeeee",
		"d1:ai-1ee",
		"de",
		"d99999999999:ae",
		"dddddddddddddddddddd",
		"llllllllllllllllllllll",
		"i-e",
		"d1:a2:be",
	} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := decodeDict(b)
		if err != nil || !encodable(d) {
			return
		}
		again, err := decodeDict(encode(nil, d))
		if err != nil {
			t.Fatalf("decoding %v after encoding it: %v", d, err)
		}
		if !reflect.DeepEqual(again, d) {
			t.Errorf("after encoding and decoding, %v is %v, want it unchanged", d, again)
		}
	})
}

// encodable reports whether a value has no lists. Decoded lists have a different type than the
// lists of requests.
func encodable(v any) bool {
	switch v := v.(type) {
	case []any:
		return false
	case dict:
		for _, item := range v {
			if !encodable(item) {
				return false
			}
		}
	}
	return true
}
