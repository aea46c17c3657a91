package command

import "io"

// A lineReader limits how much csv.Reader reads for one line, which may continue across line breaks
// inside quotes. Empty lines do not count, because csv.Reader skips them while it reads the next line.
type lineReader struct {
	from io.Reader
	left int // bytes of the line that may still be read

	length int // bytes since the last line break
	last   byte
	quoted bool // inside quotes, where empty lines belong to a field
}

// Read returns io.EOF once the limit is reached.
func (r *lineReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, io.EOF
	}
	n, err := r.from.Read(p[:min(len(p), r.left)])
	for _, b := range p[:n] {
		r.count(b)
	}
	return n, err
}

func (r *lineReader) count(b byte) {
	r.left--
	r.length++
	if b == '"' {
		r.quoted = !r.quoted
	}
	if b == '\n' {
		empty := r.length == 1 || r.length == 2 && r.last == '\r'
		if empty && !r.quoted {
			r.left += r.length
		}
		r.length = 0
	}
	r.last = b
}
