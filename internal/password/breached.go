package password

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// A BreachedList is a file of passwords found in breaches, as published by Have I Been Pwned and
// ordered by hash. Each line has a SHA-1 in hexadecimal, a colon and a count. Passwords are
// searched for on disk, with about thirty reads for a file of forty gigabytes. Errors never quote
// the file's contents.
type BreachedList struct {
	file io.ReaderAt
	size int64
	end  func() error
}

// OpenBreached opens a file, and checks its beginning and its end.
func OpenBreached(name string) (*BreachedList, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening breached passwords: %w", err)
	}

	info, err := file.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening breached passwords: %w", err), file.Close())
	}

	b := &BreachedList{file: file, size: info.Size(), end: file.Close}
	if err := b.look(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading breached passwords in %s: %w", name, err), file.Close())
	}
	return b, nil
}

// Close closes the file.
func (b *BreachedList) Close() error {
	if b == nil {
		return nil
	}
	return b.end()
}

// look checks that the first and last lines are valid, and that their hashes are in order.
func (b *BreachedList) look() error {
	first, _, err := b.line(0)
	if err == io.EOF {
		return errors.New("it is empty")
	}
	if err != nil {
		return err
	}

	for at := max(0, b.size-lineLength); ; {
		last, next, err := b.line(at)
		if err == io.EOF {
			return nil
		}
		if err == nil && bytes.Compare(first, last) > 0 {
			err = errors.New("it is not ordered by hash")
		}
		if err != nil {
			return err
		}
		at = next
	}
}

// Has reports whether the file contains a password. A nil BreachedList contains none.
func (b *BreachedList) Has(password string) (bool, error) {
	if b == nil {
		return false, nil
	}

	sum := sha1.Sum([]byte(password))
	for low, high := int64(0), b.size; low < high; {
		middle := low + (high-low)/2
		at, next, err := b.line(middle)
		if err == io.EOF {
			high = middle
			continue
		}

		if err != nil {
			return false, err
		}

		switch c := bytes.Compare(sum[:], at); {
		case c == 0:
			return true, nil
		case c < 0:
			high = middle
		default:
			low = next
		}
	}
	return false, nil
}

// lineLength is more than the length of any line, which consists of a hash, a colon and a count.
const lineLength = 128

// line returns the hash in the first line that does not begin before the offset at. The result next
// is the offset after the first byte of this line. If there is no such line, the error is io.EOF.
func (b *BreachedList) line(at int64) (hash []byte, next int64, err error) {
	from := max(0, at-1)
	buffer := make([]byte, 2*lineLength)

	n, err := b.file.ReadAt(buffer, from)
	if err != nil && err != io.EOF {
		return nil, 0, err
	}
	text := buffer[:n]

	if at > 0 { // skip the rest of the previous line
		end := bytes.IndexByte(text, '\n')
		if end < 0 && n == len(buffer) {
			return nil, 0, errors.New("it does not have one hash per line")
		}
		if end < 0 {
			return nil, 0, io.EOF
		}
		from, text = from+int64(end)+1, text[end+1:]
	}

	if len(text) == 0 {
		return nil, 0, io.EOF
	}

	const digits = 2 * sha1.Size
	hash = make([]byte, sha1.Size)
	if len(text) < digits || len(text) > digits && !bytes.ContainsAny(text[digits:digits+1], ":\r\n") {
		return nil, 0, errors.New("it does not have one hash per line, as pwned-passwords-sha1-ordered-by-hash does")
	}

	if _, err := hex.Decode(hash, text[:digits]); err != nil {
		return nil, 0, errors.New("it has lines that are not SHA-1 in hexadecimal")
	}
	return hash, from + 1, nil
}
