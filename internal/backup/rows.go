package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
)

// readTable passes the rows of a table to the visitor.
func (r *reader) readTable(t Table) error {
	l := &lineReader{r: r, prefix: rowsPrefix + t.Name + "/", hash: sha256.New()}
	if r.entry == nil || !strings.HasPrefix(r.entry.Name, l.prefix) {
		r.found.Tables = append(r.found.Tables, l.sum(t.Name))
		return nil
	}

	var invalid error // returned even if the visitor ignores it
	rows := func(yield func([]any, error) bool) {
		for row, err := range parseRows(t, l) {
			invalid = err
			if !yield(row, err) {
				return
			}
		}
	}
	refused := r.Rows(t, rows)
	if err := errors.Join(invalid, refused); err != nil {
		return err
	}
	r.found.Tables = append(r.found.Tables, l.sum(t.Name))
	return nil
}

// parseRows returns the rows of a table. It ends after the first error.
func parseRows(t Table, l *lineReader) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		for text, err := range l.all() {
			if err != nil {
				yield(nil, err)
				return
			}
			row, err := parseRow(t, text)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(row, nil) {
				return
			}
		}
	}
}

// parseRow parses a row, whose values must match the columns. It stops at the first value that does
// not match, so that a line of many small values cannot use much memory.
func parseRow(t Table, text json.RawMessage) ([]any, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if begin, err := dec.Token(); err != nil || begin != json.Delim('[') {
		return nil, errors.Join(errors.New("a row is not an array"), err)
	}

	row := make([]any, 0, len(t.Columns))
	for dec.More() {
		if len(row) == len(t.Columns) {
			return nil, fmt.Errorf("a row has more than %d values", len(row))
		}
		value, err := parseValue(dec, t.Columns[len(row)])
		if err != nil {
			return nil, err
		}
		row = append(row, value)
	}

	if len(row) != len(t.Columns) {
		return nil, fmt.Errorf("a row has %d values, not %d", len(row), len(t.Columns))
	}
	return row, nil
}

func parseValue(dec *json.Decoder, c Column) (any, error) {
	value, err := dec.Token()
	if err != nil {
		return nil, err
	}

	switch v := value.(type) {
	case nil:
		return nil, nil
	case json.Number:
		if c.Integer {
			return v.Int64()
		}
	case string:
		if !c.Integer {
			return v, nil
		}
	}
	return nil, fmt.Errorf("column %s has a value of the wrong type", c.Name)
}
