// Package compact encodes the contents of sealed tokens. Values have fixed positions instead of
// names. The encoding is shorter than JSON, and several times as fast to write and to read.
package compact

import (
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// AppendTime appends a time, rounded down to microseconds.
func AppendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return binary.AppendVarint(b, 0)
	}
	return binary.AppendVarint(b, t.UnixMicro())
}

// AppendList appends the length of a list and its texts.
func AppendList(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, text := range list {
		b = AppendText(b, text)
	}
	return b
}

// AppendText appends a text. A UUID in lower case is encoded as the byte 1 and its sixteen bytes.
// "" is encoded as 0, and any other text as its length plus one and its bytes.
func AppendText(b []byte, text string) []byte {
	if u, ok := plainUUID(text); ok {
		return append(append(b, 1), u[:]...)
	}
	if text == "" {
		return append(b, 0)
	}
	return append(binary.AppendUvarint(b, uint64(len(text))+1), text...)
}

// plainUUID parses a UUID in lower case, the form that we write.
func plainUUID(text string) (u uuid.UUID, ok bool) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return u, false
	}
	for i, at := range [len(u)]int{0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34} {
		high, low := smallDigits[text[at]], smallDigits[text[at+1]]
		if max(high, low) == noDigit {
			return u, false
		}
		u[i] = high<<4 | low
	}
	return u, true
}

const noDigit = 0xff

// smallDigits maps hexadecimal digits in lower case to their values.
var smallDigits = func() (values [256]byte) {
	for c := range values {
		values[c] = noDigit
	}
	for value, c := range []byte("0123456789abcdef") {
		values[c] = byte(value)
	}
	return values
}()

// A Reader reads an encoding from front to back. If the encoding is truncated or invalid, Done
// returns false, and the results of the other methods have no meaning.
type Reader struct {
	rest []byte
	bad  bool
}

// NewReader returns a Reader of b.
func NewReader(b []byte) *Reader { return &Reader{rest: b} }

// More reports whether there is more to read.
func (r *Reader) More() bool { return !r.bad && len(r.rest) > 0 }

// Done reports whether everything was read, and was valid.
func (r *Reader) Done() bool { return !r.bad && len(r.rest) == 0 }

func (r *Reader) take(n uint64) []byte {
	r.bad = r.bad || n > uint64(len(r.rest))
	if r.bad {
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// Size reads a number that binary.AppendUvarint has written.
func (r *Reader) Size() uint64 {
	n, used := binary.Uvarint(r.rest)
	r.bad = r.bad || used <= 0
	r.take(uint64(max(used, 0)))
	return n
}

// Number reads a number that binary.AppendVarint has written.
func (r *Reader) Number() int64 {
	n, used := binary.Varint(r.rest)
	r.bad = r.bad || used <= 0
	r.take(uint64(max(used, 0)))
	return n
}

// Time reads a time.
func (r *Reader) Time() time.Time {
	us := r.Number()
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// Text reads a string.
func (r *Reader) Text() string {
	switch n := r.Size(); n {
	case 0:
		return ""
	case 1:
		u, err := uuid.FromBytes(r.take(16))
		if err != nil {
			return "" // take has recorded that the encoding is truncated
		}
		return u.String()
	default:
		return string(r.take(n - 1))
	}
}

// List reads a list of texts. It returns nil if the list is empty. Each text takes at least one
// byte, so a list cannot be longer than the rest of the encoding.
func (r *Reader) List() (all []string) {
	n := r.Size()
	r.bad = r.bad || n > uint64(len(r.rest))
	if r.bad {
		return nil
	}
	for range n {
		all = append(all, r.Text())
	}
	return all
}
