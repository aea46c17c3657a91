package transfer

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// maxLine is the maximum length of a line, in bytes.
const maxLine = 16 << 20

// Read returns the records of a file that [Export] wrote, with their line numbers. Each record is a
// pointer to one of the record types. Read stops at the first line that is not a record. If the
// file is truncated, or continues after its end record, the last pair has an error.
func Read(r io.Reader) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		in := bufio.NewScanner(r)
		in.Buffer(make([]byte, 64<<10), maxLine)
		line := Line{}
		next := func() bool {
			line.Number++
			return in.Scan()
		}

		if err := readHeader(in, next); err != nil {
			yield(line, err)
			return
		}

		for records := 0; next(); records++ {
			record, err := parse(in.Bytes())
			if err != nil {
				yield(line, fmt.Errorf("line %d: %w", line.Number, err))
				return
			}
			if end, ok := record.(*End); ok {
				if end.Records != records {
					yield(line, fmt.Errorf("line %d: the file has %d records, but had %d when it was written",
						line.Number, records, end.Records))
					return
				}
				if err := readEnd(in, next); err != nil {
					yield(line, fmt.Errorf("line %d: %w", line.Number, err))
				}
				return
			}

			line.Record = record
			if !yield(line, nil) {
				return
			}
		}
		yield(line, errors.Join(in.Err(), errors.New("the file is cut off: its last line is missing")))
	}
}

// A Line is a record and its line number.
type Line struct {
	Number int
	Record any
}

// readHeader reads the first line, and returns an error if this version cannot read the file.
func readHeader(in *bufio.Scanner, next func() bool) error {
	var h Header
	if !next() || json.Unmarshal(in.Bytes(), &h) != nil || h.Kind != Format {
		return errors.New("this is not a file that `selvage export` wrote; --from names other systems")
	}
	if h.Version > Version {
		return fmt.Errorf("the file has version %d of the format, and this version of selvage reads up to %d; "+
			"import it with selvage %s or newer", h.Version, Version, h.By)
	}
	return nil
}

// readEnd returns an error if anything but empty lines follows the end record of a file. Without this
// check, only the first of several joined files would be imported.
func readEnd(in *bufio.Scanner, next func() bool) error {
	for next() {
		if len(bytes.TrimSpace(in.Bytes())) > 0 {
			return errors.New("the file continues after its end; import one file after the other")
		}
	}
	return in.Err()
}

// parse parses a record.
func parse(line []byte) (any, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, fmt.Errorf("this is not JSON: %w", err)
	}
	record := newRecord(head.Kind)
	if record == nil {
		return nil, fmt.Errorf("%q is not a kind of record", head.Kind)
	}
	if err := unmarshal(line, record); err != nil {
		return nil, err
	}
	return record, nil
}

// newRecord returns a pointer to an empty record, or nil if the kind is unknown.
func newRecord(kind string) any {
	switch kind {
	case kindProject:
		return new(Project)
	case kindKey:
		return new(Key)
	case kindClient:
		return new(Client)
	case kindSubscriber:
		return new(Subscriber)
	case kindResource:
		return new(Resource)

	case kindNumber:
		return new(Number)
	case kindWebhook:
		return new(Webhook)
	case kindUpstream:
		return new(Upstream)
	case kindIngestKey:
		return new(IngestKey)
	case kindRule:
		return new(Rule)

	case kindEnd:
		return new(End)
	}
	return nil
}
