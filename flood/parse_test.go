package flood_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/gotd/td/proto/codec"
	"github.com/gotd/td/tgerr"
	"github.com/stretchr/testify/require"

	"github.com/weirtg/weir/flood"
)

func TestEveryRefusalOfTheTableIsRead(t *testing.T) {
	day := 24 * time.Hour
	for _, tt := range []struct {
		code int
		msg  string
		want flood.Notice
	}{
		{420, "FLOOD_WAIT_3", flood.Notice{Kind: flood.FloodWait, Wait: 3 * time.Second}},
		{420, "FLOOD_WAIT_0003", flood.Notice{Kind: flood.FloodWait, Wait: 3 * time.Second}},
		{420, "FLOOD_WAIT_86400", flood.Notice{Kind: flood.FloodWait, Wait: day}},
		{420, "FLOOD_WAIT_1209600", flood.Notice{Kind: flood.FloodWait, Wait: 14 * day}},
		{420, "FLOOD_WAIT_1209601", flood.Notice{Kind: flood.FloodWait, Wait: 14 * day}},
		{420, "FLOOD_WAIT_9223372036854775807", flood.Notice{Kind: flood.FloodWait, Wait: 14 * day}},
		{420, "FLOOD_WAIT_9223372036854775808", flood.Notice{Kind: flood.FloodWait, Wait: 14 * day}},
		{420, "FLOOD_WAIT_99999999999999999999", flood.Notice{Kind: flood.FloodWait, Wait: 14 * day}},
		{420, "FLOOD_WAIT_999999999999999999990", flood.Notice{Kind: flood.FloodWait, Wait: 14 * day}},
		{420, "FLOOD_WAIT", flood.Notice{Kind: flood.FloodWait, Wait: time.Second, Unnumbered: true}},
		{420, "FLOOD_WAIT_0", flood.Notice{Kind: flood.FloodWait, Wait: time.Second, Unnumbered: true}},
		{420, "FLOOD_WAIT_000", flood.Notice{Kind: flood.FloodWait, Wait: time.Second, Unnumbered: true}},
		// gotd goes by the name alone, whatever the code.
		{400, "FLOOD_WAIT_3", flood.Notice{Kind: flood.FloodWait, Wait: 3 * time.Second}},
		{0, "FLOOD_PREMIUM_WAIT_3", flood.Notice{Kind: flood.PremiumWait, Wait: 3 * time.Second}},
		{420, "FLOOD_PREMIUM_WAIT_3", flood.Notice{Kind: flood.PremiumWait, Wait: 3 * time.Second}},
		{420, "FLOOD_PREMIUM_WAIT", flood.Notice{Kind: flood.PremiumWait, Wait: time.Second, Unnumbered: true}},
		{420, "SLOWMODE_WAIT_30", flood.Notice{Kind: flood.SlowMode, Wait: 30 * time.Second}},
		{420, "FLOOD_TEST_PHONE_WAIT_9", flood.Notice{Kind: flood.TestPhone, Wait: 9 * time.Second}},
		{420, "FLOOD_SKIP_FAILED_WAIT", flood.Notice{Kind: flood.SkipFailed, Wait: time.Second, Unnumbered: true}},
		{500, "WORKER_BUSY_TOO_LONG_RETRY", flood.Notice{Kind: flood.Busy, Wait: time.Second, Unnumbered: true}},
		{420, "2FA_CONFIRM_WAIT_604800", flood.Notice{Kind: flood.ConfirmWait, Wait: 7 * day}},
		{420, "TAKEOUT_INIT_DELAY_86400", flood.Notice{Kind: flood.TakeoutDelay, Wait: day}},
		{420, "FLOOD_WAIT_60_OR_STARS_10", flood.Notice{Kind: flood.WaitOrStars, Wait: time.Minute, Stars: 10}},
		{420, "FLOOD_WAIT_0_OR_STARS_99999999999999999999", flood.Notice{Kind: flood.WaitOrStars, Wait: time.Second, Stars: math.MaxInt64}},
		{420, "STORY_SEND_FLOOD_WEEKLY_1790000000", flood.Notice{Kind: flood.StoryLimit, Until: time.Unix(1790000000, 0)}},
		{400, "STORY_SEND_FLOOD_MONTHLY_1790000000", flood.Notice{Kind: flood.StoryLimit, Until: time.Unix(1790000000, 0)}},
		{420, "STORY_SEND_FLOOD_WEEKLY_99999999999999999999", flood.Notice{Kind: flood.StoryLimit, Until: time.Unix(253402300799, 0)}},
		{420, "PREMIUM_SUB_ACTIVE_UNTIL_1790000000", flood.Notice{Kind: flood.PremiumActive, Until: time.Unix(1790000000, 0)}},
		{420, "FROZEN_METHOD_INVALID", flood.Notice{Kind: flood.Frozen}},
		{400, "PEER_FLOOD", flood.Notice{Kind: flood.PeerFlood}},
		{400, "PHONE_NUMBER_FLOOD", flood.Notice{Kind: flood.PhoneFlood}},
		{406, "PHONE_PASSWORD_FLOOD", flood.Notice{Kind: flood.PhoneFlood}},
		{400, "API_ID_PUBLISHED_FLOOD", flood.Notice{Kind: flood.APIIDFlood}},
		{406, "PREVIOUS_CHAT_IMPORT_ACTIVE_WAIT_5MIN", flood.Notice{Kind: flood.ChatImport, Wait: 5 * time.Minute}},
		{406, "PREVIOUS_CHAT_IMPORT_ACTIVE_WAIT_99999999999999999999MIN", flood.Notice{Kind: flood.ChatImport, Wait: 14 * day}},
	} {
		t.Run(fmt.Sprint(tt.code, " ", tt.msg), func(t *testing.T) {
			tt.want.Code, tt.want.Message = tt.code, tt.msg
			got, ok := flood.Parse(tt.code, tt.msg)
			require.True(t, ok)
			require.Equal(t, tt.want, got)
			require.Equal(t, got.Kind <= flood.Busy, got.Waitable())

			// The same through an error, wrapped.
			got, ok = flood.FromError(fmt.Errorf("send: %w", tgerr.New(tt.code, tt.msg)))
			require.True(t, ok)
			require.Equal(t, tt.want, got)
		})
	}
}

func TestWhatOnlyLooksLikeAWaitIsNone(t *testing.T) {
	for _, tt := range []struct {
		code int
		msg  string
	}{
		{420, ""},
		{420, "FLOOD"},
		{420, "FLOOD_WAIT_"},
		{420, "FLOOD_WAIT_-3"},
		{420, "FLOOD_WAIT_+3"},
		{420, "FLOOD_WAIT_3 "},
		{420, " FLOOD_WAIT_3"},
		{420, "FLOOD_WAIT_3\n"},
		{420, "FLOOD_WAIT_3s"},
		{420, "FLOOD_WAIT_99999999999999999999x"},
		{420, "FLOOD_WAIT_٣"}, // an Arabic digit
		{420, "FLOOD_WAIT_3_4"},
		{420, "flood_wait_3"},
		{420, "MY_FLOOD_WAIT_3"},
		{420, "FLOOD_WAITING_3"},
		{420, "FLOOD_WAIT_OR_STARS_3"},
		{420, "FLOOD_WAIT_3_OR_STARS_"},
		{420, "FLOOD_WAIT__OR_STARS_3"},
		{400, "FLOOD_WAIT_3_OR_STARS_3"},
		{400, "SLOWMODE_WAIT_3"},
		{420, "SLOWMODE_WAIT"},
		{420, "FLOOD_SKIP_FAILED_WAIT_3"},
		{420, "WORKER_BUSY_TOO_LONG_RETRY"},
		{420, "STORY_SEND_FLOOD_DAILY_3"},
		{406, "STORY_SEND_FLOOD_WEEKLY_3"},
		{400, "STORY_SEND_FLOOD_WEEKLY_"},
		{420, "PREMIUM_SUB_ACTIVE_UNTIL_soon"},
		{420, "PEER_FLOOD"},
		{406, "PHONE_NUMBER_FLOOD"},
		{400, "PHONE_PASSWORD_FLOOD"},
		{406, "PREVIOUS_CHAT_IMPORT_ACTIVE_WAIT_5"},
		{406, "PREVIOUS_CHAT_IMPORT_ACTIVE_WAIT_MIN"},
		{406, "PREVIOUS_CHAT_IMPORT_ACTIVE_WAIT_5SEC"},
		{400, "CHAT_ADMIN_REQUIRED"},
	} {
		_, ok := flood.Parse(tt.code, tt.msg)
		require.False(t, ok, "%d %q", tt.code, tt.msg)
	}
}

func TestErrorsThatGotdMakes(t *testing.T) {
	// By hand, without a message.
	n, ok := flood.FromError(&tgerr.Error{Code: 420, Type: "FLOOD_WAIT", Argument: 7})
	require.True(t, ok)
	require.Equal(t, 7*time.Second, n.Wait)
	n, ok = flood.FromError(&tgerr.Error{Code: 420, Type: "FLOOD_WAIT"})
	require.True(t, ok)
	require.True(t, n.Unnumbered)
	_, ok = flood.FromError(&tgerr.Error{Code: 420, Type: "FLOOD_WAIT", Argument: -7})
	require.False(t, ok)

	// The transport's own flood.
	n, ok = flood.FromError(fmt.Errorf("read: %w", &codec.ProtocolErr{Code: 429}))
	require.True(t, ok)
	require.Equal(t, flood.Transport, n.Kind)
	require.Equal(t, -429, n.Code)
	require.False(t, n.Waitable())
	_, ok = flood.FromError(&codec.ProtocolErr{Code: 404})
	require.False(t, ok)

	for _, err := range []error{nil, errors.New("FLOOD_WAIT_3"), &flood.WaitError{Server: tgerr.New(420, "FLOOD_WAIT_3")}} {
		_, ok = flood.FromError(err)
		require.False(t, ok)
	}
}

func TestKindsHaveNamesOfTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for k := flood.FloodWait; k <= flood.Transport; k++ {
		require.Regexp(t, `^[a-z]+(_[a-z]+)*$`, k.String())
		require.False(t, seen[k.String()], k.String())
		seen[k.String()] = true
	}
	require.NotContains(t, seen, flood.Kind(0).String())
}

func TestReadingAnErrorAllocatesNothing(t *testing.T) {
	var miss, hit error = tgerr.New(400, "CHAT_ADMIN_REQUIRED"), tgerr.New(420, "FLOOD_WAIT_31")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		flood.FromError(miss)
		flood.FromError(hit)
	}))
}

func FuzzParse(f *testing.F) {
	for _, msg := range []string{
		"FLOOD_WAIT_3", "FLOOD_WAIT", "FLOOD_WAIT_99999999999999999999", "FLOOD_WAIT_1_OR_STARS_2", "SLOWMODE_WAIT_3",
		"STORY_SEND_FLOOD_WEEKLY_1790000000", "PREVIOUS_CHAT_IMPORT_ACTIVE_WAIT_5MIN", "2FA_CONFIRM_WAIT_1",
		"PREMIUM_SUB_ACTIVE_UNTIL_18446744073709551616", "WORKER_BUSY_TOO_LONG_RETRY", "",
	} {
		for _, code := range []int{420, 400, 406, 500} {
			f.Add(code, msg)
		}
	}
	f.Fuzz(func(t *testing.T, code int, msg string) {
		n, ok := flood.Parse(code, msg)
		if !ok {
			return
		}
		if n.Code != code || n.Message != msg {
			t.Fatalf("changed what the server said: %+v", n)
		}
		if n.Wait != 0 && (n.Wait < flood.MinWait || n.Wait > flood.MaxWait) {
			t.Fatalf("wait out of range: %v", n.Wait)
		}
		if n.Waitable() && n.Wait == 0 {
			t.Fatalf("nothing to wait for: %+v", n)
		}
		if n.Stars < 0 || n.Kind.String() == "unknown" {
			t.Fatalf("%+v", n)
		}
		if _, err := n.Until.MarshalJSON(); err != nil {
			t.Fatal(err)
		}
		if _, ok := flood.Parse(code, msg+"x"); ok {
			t.Fatalf("not anchored: %q", msg)
		}
	})
}
