package rtpengine

import (
	"errors"
	"slices"
	"strconv"
)

// A dict is a dictionary of the NG protocol. Its values are strings, integers, lists and dicts.
type dict map[string]any

// maxDepth limits how deeply the values of a reply may be nested.
const maxDepth = 12

var errBencode = errors.New("rtpengine's reply is not valid bencode")

// encode appends v in bencode. Keys are sorted.
func encode(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		b = strconv.AppendInt(b, int64(len(v)), 10)
		b = append(b, ':')
		return append(b, v...)

	case int:
		b = append(b, 'i')
		b = strconv.AppendInt(b, int64(v), 10)
		return append(b, 'e')
	case []string:
		b = append(b, 'l')
		for _, item := range v {
			b = encode(b, item)
		}
		return append(b, 'e')

	case dict:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		b = append(b, 'd')
		for _, key := range keys {
			b = encode(encode(b, key), v[key])
		}
		return append(b, 'e')
	}
	panic("rtpengine: a value that has no form in bencode")
}

// decodeDict decodes a dictionary that fills all of b.
func decodeDict(b []byte) (dict, error) {
	v, rest, err := decode(b, 0)
	if err != nil {
		return nil, err
	}
	d, ok := v.(dict)
	if !ok || len(rest) > 0 {
		return nil, errBencode
	}
	return d, nil
}

// decode decodes one value, and returns the bytes after it. Lists are []any.
func decode(b []byte, depth int) (v any, rest []byte, err error) {
	if len(b) == 0 || depth > maxDepth {
		return nil, nil, errBencode
	}
	switch b[0] {
	case 'i':
		return decodeInt(b[1:], 'e')
	case 'l':
		return decodeList(b[1:], depth)
	case 'd':
		list, rest, err := decodeList(b[1:], depth)
		if err != nil || len(list)%2 != 0 {
			return nil, nil, errBencode
		}
		d := make(dict, len(list)/2)
		for pair := range slices.Chunk(list, 2) {
			key, ok := pair[0].(string)
			if !ok {
				return nil, nil, errBencode
			}
			d[key] = pair[1]
		}
		return d, rest, nil
	}

	n, rest, err := decodeInt(b, ':')
	if err != nil || n < 0 || n > len(rest) {
		return nil, nil, errBencode
	}
	return string(rest[:n]), rest[n:], nil
}

// decodeList decodes values up to the end of their list.
func decodeList(b []byte, depth int) (list []any, rest []byte, err error) {
	for len(b) > 0 && b[0] != 'e' {
		var v any
		if v, b, err = decode(b, depth+1); err != nil {
			return nil, nil, err
		}
		list = append(list, v)
	}
	if len(b) == 0 {
		return nil, nil, errBencode
	}
	return list, b[1:], nil
}

// decodeInt decodes a number that ends with the byte end.
func decodeInt(b []byte, end byte) (n int, rest []byte, err error) {
	i := slices.Index(b, end)
	if i < 0 {
		return 0, nil, errBencode
	}
	if n, err = strconv.Atoi(string(b[:i])); err != nil {
		return 0, nil, errBencode
	}
	return n, b[i+1:], nil
}

// text returns the string at key, or "".
func (d dict) text(key string) string {
	s, _ := d[key].(string)
	return s
}

// number returns the integer at key, or 0.
func (d dict) number(key string) int {
	n, _ := d[key].(int)
	return n
}

// at returns the dictionary at a path of keys, or an empty dictionary.
func (d dict) at(path ...string) dict {
	for _, key := range path {
		d, _ = d[key].(dict)
	}
	return d
}

// dicts returns the dictionaries in the list at key.
func (d dict) dicts(key string) (found []dict) {
	list, _ := d[key].([]any)
	for _, v := range list {
		if item, ok := v.(dict); ok {
			found = append(found, item)
		}
	}
	return found
}
