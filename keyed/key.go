package keyed

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Nobody is what stands for a part of a key that is empty: what is not of one member,
// or of one chat, but of all.
const Nobody = "global"

// Key makes a key of parts, joined with ":". Different parts make different keys.
//
//	Key("award", chatID, userID)   award:-100123:456
//	Key("award", chatID, "")       award:-100123:global
//
// A part is text, bytes, a number, a fmt.Stringer, or anything that fmt.Sprint prints;
// of another pointer, what it points to. What counts is how it is printed: 7 and "7" are
// the same. A part that is empty or nil, and a Key of no parts, is "global". 0 is not
// empty.
//
// A backslash is put before a ":" and a backslash in a part, and before a part that is
// the word "global", so that somebody of that name does not share what is everybody's.
//
// Key does not bound the length of what it makes; what is charged to may have [MaxKey]
// bytes.
func Key(parts ...any) string {
	if len(parts) == 0 {
		return Nobody
	}
	var space [64]byte
	key := space[:0]
	for i, part := range parts {
		if i > 0 {
			key = append(key, ':')
		}
		key = appendPart(key, part)
	}
	return string(key)
}

func appendPart(key []byte, part any) []byte {
	switch p := part.(type) {
	case nil:
		return append(key, Nobody...)
	case string:
		return appendText(key, p)
	case []byte:
		return appendText(key, string(p))
	case int:
		return strconv.AppendInt(key, int64(p), 10)
	case int64:
		return strconv.AppendInt(key, p, 10)
	}
	if v := reflect.ValueOf(part); v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return append(key, Nobody...)
		}
		switch part.(type) {
		case fmt.Stringer, error:
		default:
			return appendPart(key, v.Elem().Interface())
		}
	}
	return appendText(key, fmt.Sprint(part))
}

func appendText(key []byte, text string) []byte {
	switch {
	case text == "":
		return append(key, Nobody...)
	case text == Nobody:
		key = append(key, '\\')
	case strings.ContainsAny(text, `:\`):
		for i := range len(text) {
			if text[i] == ':' || text[i] == '\\' {
				key = append(key, '\\')
			}
			key = append(key, text[i])
		}
		return key
	}
	return append(key, text...)
}
