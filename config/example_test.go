package config_test

import (
	"errors"
	"fmt"

	"github.com/weirtg/weir/config"
)

func ExampleParse() {
	c, err := config.Parse([]byte(`
sleep_threshold: 30s
rate_limits:
  message: {rate: 10}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.SleepThreshold.UpTo)
	message := c.RateLimits["message"]
	fmt.Println(*message.Rate, message.Burst == nil)
	// Output:
	// 30s
	// 10 true
}

func ExampleLoad() {
	// A program passes the path that its user gave, and os.LookupEnv.
	getenv := func(name string) (string, bool) {
		vars := map[string]string{
			"APP_ID":    "12345",
			"APP_HASH":  "0123456789abcdef0123456789abcdef",
			"BOT_TOKEN": "123456:made-up",
		}
		text, ok := vars[name]
		return text, ok
	}
	c, err := config.Load("example.yaml", getenv, config.Flags{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.HasAccount(), c.BotToken, c.BotToken.Reveal())
	// Output: true [redacted] 123456:made-up
}

func ExampleError() {
	_, err := config.Parse([]byte("dc: 7\nrate_limits:\n  massage: {rate: 10}\n"))
	fmt.Println(err)

	var faults *config.Error
	if errors.As(err, &faults) {
		for _, f := range faults.Faults {
			fmt.Println(f.Line, f.Field)
		}
	}
	// Output:
	// config:1:5: dc: 7 is not a whole number from 0 to 5; 0 leaves the choice to the client
	// config:3:3: rate_limits.massage is not a known key; did you mean message?
	// 1 dc
	// 3 rate_limits.massage
}
