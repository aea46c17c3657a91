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
// ordered by hash. Each line has a SHA-1 in hexadecimal, a colon and a count. The file stays on disk:
// searching for a password in forty gigabytes takes about thirty reads. Errors never quote the file's
// contents.
type BreachedList struct {
	file *os.File
	size int64
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

	b := &BreachedList{file: file, size: info.Size()}
	if err := b.checkEnds(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading breached passwords in %s: %w", name, err), file.Close())
	}
	return b, nil
}

// Close closes the file.
func (b *BreachedList) Close() error {
	if b == nil {
		return nil
	}
	return b.file.Close()
}

// checkEnds checks that the first and last lines are valid, and that their hashes are in order.
func (b *BreachedList) checkEnds() error {
	first, _, err := b.readLine(0)
	if err == io.EOF {
		return errors.New("it is empty")
	}
	if err != nil {
		return err
	}

	offset := max(0, b.size-lineLength)
	for {
		last, next, err := b.readLine(offset)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if bytes.Compare(first, last) > 0 {
			return errors.New("it is not ordered by hash")
		}
		offset = next
	}
}

// Has reports whether the file contains a password. A nil BreachedList contains none.
func (b *BreachedList) Has(password string) (bool, error) {
	if b == nil {
		return false, nil
	}

	// If the file has the password's hash, its line begins at or after low, and before high.
	wanted := sha1.Sum([]byte(password))
	low, high := int64(0), b.size
	for low < high {
		middle := low + (high-low)/2
		hash, next, err := b.readLine(middle)
		if err == io.EOF { // no line begins at or after middle
			high = middle
			continue
		}
		if err != nil {
			return false, err
		}

		switch order := bytes.Compare(wanted[:], hash); {
		case order == 0:
			return true, nil
		case order < 0:
			high = middle
		default:
			low = next
		}
	}
	return false, nil
}

// lineLength is more than the length of any line, which consists of a hash, a colon and a count.
const lineLength = 128

// readLine returns the hash in the first line that begins at the given offset or after it. next is the
// offset of the second byte of this line, so the next call with it returns the line that follows. If there
// is no such line, the error is io.EOF.
func (b *BreachedList) readLine(offset int64) (hash []byte, next int64, err error) {
	start := max(0, offset-1) // includes the end of the previous line
	buffer := make([]byte, 2*lineLength)
	n, err := b.file.ReadAt(buffer, start)
	if err != nil && err != io.EOF {
		return nil, 0, err
	}
	text := buffer[:n]

	if offset > 0 { // skip the rest of the previous line
		end := bytes.IndexByte(text, '\n')
		if end < 0 && n == len(buffer) {
			return nil, 0, errors.New("it does not have one hash per line")
		}
		if end < 0 {
			return nil, 0, io.EOF
		}
		start += int64(end) + 1
		text = text[end+1:]
	}
	if len(text) == 0 {
		return nil, 0, io.EOF
	}

	hash, err = parseHash(text)
	if err != nil {
		return nil, 0, err
	}
	return hash, start + 1, nil
}

// parseHash returns the hash at the beginning of a line.
func parseHash(text []byte) ([]byte, error) {
	const digits = 2 * sha1.Size
	if len(text) < digits || len(text) > digits && !bytes.ContainsAny(text[digits:digits+1], ":\r\n") {
		return nil, errors.New("it does not have one hash per line, as pwned-passwords-sha1-ordered-by-hash does")
	}
	hash := make([]byte, sha1.Size)
	if _, err := hex.Decode(hash, text[:digits]); err != nil {
		return nil, errors.New("it has lines that are not SHA-1 in hexadecimal")
	}
	return hash, nil
}
