package backup

import (
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"iter"
	"strings"
)

// A lineReader reads the lines of consecutive entries whose names have a prefix.
type lineReader struct {
	r      *reader
	prefix string
	hash   hash.Hash
	rows   int64
	next   int // number of the next entry
}

// all returns the lines of all consecutive entries with the prefix, and advances past these
// entries.
func (l *lineReader) all() iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		for l.r.entry != nil && strings.HasPrefix(l.r.entry.Name, l.prefix) {
			wantsMore, err := l.readEntry(yield)
			if err != nil {
				yield(nil, err)
				return
			}
			if !wantsMore {
				return
			}
		}
	}
}

// readEntry passes the lines of the current entry to yield, and then advances. It reports whether
// yield wants more lines.
func (l *lineReader) readEntry(yield func(json.RawMessage, error) bool) (wantsMore bool, err error) {
	if want := fmt.Sprintf("%s%06d.jsonl.gz", l.prefix, l.next); l.r.entry.Name != want {
		return false, fmt.Errorf("the archive has %q instead of %q", l.r.entry.Name, want)
	}
	l.next++
	z, err := gzip.NewReader(l.r.tar)
	if err != nil {
		return false, err
	}

	limited := &io.LimitedReader{R: z, N: maxLine}
	dec := json.NewDecoder(io.TeeReader(limited, l.hash))
	for {
		var line json.RawMessage
		err := dec.Decode(&line)
		if err == io.EOF {
			break
		}
		if err != nil {
			return false, err
		}
		l.rows++
		if !yield(line, nil) {
			return false, nil
		}
	}

	if limited.N == 0 {
		return false, fmt.Errorf("%s is too long", l.r.entry.Name)
	}
	return true, l.r.advance()
}

func (l *lineReader) sum(name string) Sum {
	return Sum{Name: name, Rows: l.rows, SHA256: hex.EncodeToString(l.hash.Sum(nil))}
}
