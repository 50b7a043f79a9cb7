package classify

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCategoryNames(t *testing.T) {
	var names []string
	for _, c := range Categories() {
		require.True(t, c.Valid())
		parsed, err := ParseCategory(c.String())
		require.NoError(t, err)
		require.Equal(t, c, parsed)
		names = append(names, c.String())
	}
	require.Equal(t, []string{"message", "media", "query", "admin", "bulk", "account", "global"}, names)
	require.False(t, Category(0).Valid())
	require.False(t, (Global + 1).Valid())
	require.Equal(t, "none", Category(0).String())
	require.Equal(t, "Category(9)", Category(9).String())
}

func TestParseCategoryNamesAll(t *testing.T) {
	for _, name := range []string{"", "none", "Message", "messages", "Category(9)"} {
		_, err := ParseCategory(name)
		require.ErrorContains(t, err, `"`+name+`"`)
		require.ErrorContains(t, err, "message, media, query, admin, bulk, account, global")
	}
}

func TestCategoryText(t *testing.T) {
	in := map[Category]Category{Message: Global, Bulk: 0}
	text, err := json.Marshal(in)
	require.NoError(t, err)
	require.JSONEq(t, `{"message":"global","bulk":"none"}`, string(text))
	var out map[Category]Category
	require.NoError(t, json.Unmarshal(text, &out))
	require.Equal(t, in, out)

	_, err = Category(9).MarshalText()
	require.ErrorContains(t, err, "9")
	c := Media
	require.ErrorContains(t, c.UnmarshalText([]byte("mediums")), "mediums")
	require.Equal(t, Media, c)
}
