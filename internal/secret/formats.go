package secret

import "strings"

// format is a vendor's way of writing a token: a fixed beginning, then so many characters of an alphabet.
type format struct {
	name     string
	prefixes string // separated by spaces; case matters
	body     *set
	min, max int               // length of the body; max 0 means no limit
	check    func(string) bool // looks at the body when the alphabet alone says too little; nil means notDull
}

// formats lists what is public knowledge about token formats. A body is refused when it is a placeholder, so rules need not repeat that.
var formats = []format{
	// clouds
	{"aws-access-key", "AKIA ASIA ABIA ACCA", base32, 16, 16, notDull},
	{"aws-access-key", "AKIA ASIA", upNum, 16, 16, notDull},
	{"aws-bedrock-key", "ABSK", base64s, 100, 0, notDull},
	{"aws-bedrock-key", "bedrock-api-key-", base64s, 20, 0, notDull},
	{"google-api-key", "AIza", urlSafe, 35, 0, looksRandom},
	{"google-oauth-secret", "GOCSPX-", urlSafe, 20, 0, notDull},
	{"google-access-token", "ya29.", urlSafe, 20, 0, notDull},
	{"google-refresh-token", "1//0", urlSafe, 30, 0, looksRandom},
	{"azure-devops-token", "AzureDevOps-", alnum, 32, 0, notDull},
	{"alibaba-access-key", "LTAI", alnum, 12, 26, looksRandom},
	{"tencent-secret-id", "AKID", alnum, 32, 36, looksRandom},
	{"volcengine-access-key", "AKLT", urlSafe, 24, 60, looksRandom},
	{"digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", hexits, 64, 64, notDull},
	{"heroku-key", "HRKU-", urlSafe, 30, 0, notDull},
	{"fly-token", "fo1_ fm1_ fm2_ fm1r_ fm1a_", base64s, 20, 0, notDull},
	{"akamai-token", "akab- akaa- akac-", setOf("0-9a-z\x2d"), 30, 40, looksRandom},
	{"yandex-key", "AQVN", urlSafe, 35, 38, notDull},
	{"yandex-token", "t1. y0_ y1_ y2_ y3_", setOf("0-9a-zA-Z_.=\x2d"), 38, 0, looksRandom},
	{"yandex-static-key", "YCAJE YCA", urlSafe, 20, 38, looksRandom},
	{"scaleway-key", "SCW", upNum, 17, 17, looksRandom},
	{"cloudflare-origin-key", "v1.0-", setOf("0-9a-f\x2d"), 140, 180, notDull},
	{"cloudflare-token", "cfut_ cfat_ cfk_", urlSafe, 30, 0, notDull},
	{"oracle-token", "ocid1.credential.", dotted, 20, 0, notDull},
	{"vultr-key", "VULTR_", upNum, 30, 40, looksRandom},
	{"civo-netlify-token", "nfp_ nfc_ nfo_ nfu_ nfb_", alnum, 30, 0, notDull},
	{"render-key", "rnd_", alnum, 24, 0, notDull},
	{"vercel-token", "vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_", word, 20, 0, looksRandom},
	{"railway-token", "rlwy_oaci_ rlwy_", word, 20, 0, looksRandom},
	{"supabase-key", "sbp_ sb_secret_ sbp_oauth_", word, 20, 0, notDull},
	{"planetscale-token", "pscale_tkn_ pscale_pw_ pscale_oauth_", setOf("0-9a-zA-Z_.=\x2d"), 30, 0, notDull},
	{"neon-key", "napi_ neon_api_", alnum, 40, 0, notDull},
	{"tailscale-key", "tskey-auth- tskey-api- tskey-client- tskey-webhook- tskey-scim- tskey-", urlSafe, 16, 0, notDull},
	{"databricks-token", "dapi", setOf("0-9a-f\x2d"), 32, 34, notDull},
	{"mongodb-secret", "mdb_sa_sk_ mdb_sa_id_", urlSafe, 20, 0, notDull},
	{"clickhouse-key", "4b1d", alnum, 38, 38, notDull},
	{"confluent-key", "cflt", base64s, 40, 0, notDull},
	{"aiven-token", "aivenv1 AVNS_", base64s, 15, 0, looksRandom},
	{"upstash-token", "UPSTASH_", word, 24, 0, looksRandom},
	{"turbopuffer-key", "tpuf_", alnum, 24, 0, looksRandom},
	{"xata-key", "xau_", alnum, 24, 0, notDull},
	{"hetzner-koyeb-token", "koyeb_ hcloud_", alnum, 40, 0, looksRandom},

	// code hosts and registries
	{"github-token", "ghp_ gho_ ghu_ ghs_ ghr_", word, 30, 0, notDull},
	{"github-fine-grained-token", "github_pat_", word, 22, 0, notDull},
	{"gitlab-token", "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- glsoat- glffct- gloas- glwt- glet-", dotted, 16, 0, notDull},
	{"gitlab-runner-token", "GR1348941", urlSafe, 20, 20, notDull},
	{"gitlab-session", "_gitlab_session=", lowNum, 32, 32, notDull},
	{"bitbucket-token", "BBDC- ATBB", base64s, 24, 0, looksRandom},
	{"atlassian-token", "ATATT ATCTT ATSTT ATOAT", setOf("0-9a-zA-Z_=/+\\\x2d"), 40, 0, looksRandom},
	{"trello-token", "ATTA", alnum, 64, 80, notDull},
	{"npm-token", "npm_", alnum, 36, 36, notDull},
	{"pypi-token", "pypi-AgEI pypi-AgEN pypi-", urlSafe, 50, 0, notDull},
	{"rubygems-token", "rubygems_", anyHex, 48, 48, notDull},
	{"nuget-key", "oy2", lowNum, 43, 43, looksRandom},
	{"crates-token", "cio", alnum, 32, 32, looksRandom},
	{"clojars-token", "CLOJARS_", alnum, 60, 60, notDull},
	{"docker-token", "dckr_pat_ dckr_oat_", urlSafe, 20, 0, notDull},
	{"artifactory-key", "AKC", alnum, 10, 0, looksRandom},
	{"artifactory-reference", "cmVmd", alnum, 59, 59, notDull},
	{"hashicorp-token", "hvs. hvb. hvr. s. b. r.", urlSafe, 90, 0, notDull},
	{"hashicorp-token", "hvs. hvb. hvr.", urlSafe, 24, 0, notDull},
	{"vault-token", "s. b. r.", alnum, 24, 24, looksRandom},
	{"pulumi-token", "pul-", hexits, 40, 40, notDull},
	{"doppler-token", "dp.pt. dp.st. dp.sa. dp.ct. dp.scim. dp.audit.", dotted, 38, 0, notDull},
	{"infisical-token", "st.", dotted, 60, 0, looksRandom},
	{"infracost-token", "ico-", alnum, 32, 32, notDull},
	{"circleci-token", "CCIPAT_ CCIPRJ_", word, 30, 0, notDull},
	{"buildkite-token", "bkua_ bkat_ bkaj_ bkpi_", word, 30, 0, notDull},
	{"sonar-token", "squ_ sqp_ sqa_ sqc_", hexits, 40, 40, notDull},
	{"sourcegraph-token", "sgp_ slk_ sgd_ sgph_", setOf("0-9a-fA-F_local"), 40, 0, notDull},
	{"openvsx-token", "ovsxat_ ovsxp_", setOf("0-9a-f\x2d"), 36, 36, notDull},
	{"prefect-token", "pnu_ pnb_", alnum, 36, 36, notDull},
	{"octopus-key", "API-", upNum, 25, 34, looksRandom},
	{"harness-token", "pat. sat.", setOf("0-9a-zA-Z_.\x2d"), 60, 0, looksRandom},
	{"postman-key", "PMAK- PMAT-", setOf("0-9a-zA-Z\x2d"), 20, 0, looksRandom},
	{"jfrog-token", "eyJ2ZXIiOi", base64s, 40, 0, notDull},
	{"onepassword-service-token", "ops_eyJ", base64s, 60, 0, notDull},
	{"onepassword-secret-key", "A3-", setOf("0-9A-Z\x2d"), 30, 37, dashGroups},
	{"age-secret-key", "AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1", upBech32, 50, 0, notDull},
	{"readme-key", "rdme_", lowNum, 60, 80, notDull},
	{"snyk-token", "snyk_uat. snyk_sat.", dotted, 30, 0, notDull},
	{"linear-token", "lin_api_ lin_oauth_ lin_wh_", alnum, 20, 0, notDull},
	{"launchdarkly-key", "sdk- mob- api-", setOf("0-9a-f\x2d"), 36, 36, dashGroups},
	{"split-key", "split_", alnum, 30, 0, looksRandom},
	{"statsig-stytch-secret", "secret-live- secret-test- secret-", urlSafe, 28, 0, looksRandom},

	// models
	{"openai-key", "sk-proj- sk-svcacct- sk-admin- sk-service- sk-None-", urlSafe, 20, 0, notDull},
	{"anthropic-key", "sk-ant-", urlSafe, 20, 0, notDull},
	{"openrouter-key", "sk-or-v1- sk-or-", alnum, 20, 0, notDull},
	{"openai-key", "sk-", alnum, 20, 0, looksRandom},
	{"model-api-key", "sk-lf- sk-helicone- sk-litellm- sk-cp- sk-kimi-", urlSafe, 16, 0, looksRandom},
	{"xai-key", "xai-", urlSafe, 60, 0, notDull},
	{"groq-key", "gsk_", alnum, 40, 0, notDull},
	{"perplexity-key", "pplx-", alnum, 40, 0, notDull},
	{"huggingface-token", "hf_", alnum, 34, 37, notDull},
	{"huggingface-org-token", "api_org_", alnum, 34, 34, notDull},
	{"replicate-token", "r8_", alnum, 30, 0, looksRandom},
	{"fireworks-key", "fw_ fwai_", alnum, 22, 0, looksRandom},
	{"tavily-key", "tvly-", urlSafe, 20, 0, looksRandom},
	{"jina-key", "jina_", urlSafe, 40, 0, looksRandom},
	{"nvidia-key", "nvapi-", urlSafe, 40, 0, notDull},
	{"together-key", "tgp_v1_", urlSafe, 30, 0, notDull},
	{"langsmith-key", "lsv2_pt_ lsv2_sk_ ls__", word, 20, 0, notDull},
	{"pinecone-key", "pcsk_", word, 30, 0, looksRandom},
	{"voyage-key", "pa-", urlSafe, 40, 0, looksRandom},
	{"elevenlabs-key", "sk_", hexits, 48, 48, notDull},
	{"wandb-key", "wandb_v1_", urlSafe, 30, 0, notDull},
	{"e2b-key", "e2b_", hexits, 40, 40, notDull},
	{"firecrawl-key", "fc-", hexits, 32, 32, notDull},
	{"deepgram-exa-key", "dg_ exa_", alnum, 32, 0, looksRandom},
	{"runpod-key", "rpa_", alnum, 30, 0, looksRandom},
	{"modal-token", "as-", alnum, 22, 22, looksRandom},
	{"posthog-key", "phx_ phs_", alnum, 32, 0, looksRandom},
	{"cerebras-key", "csk-", alnum, 40, 0, looksRandom},

	// chat and mail
	{"slack-token", "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxe- xoxc- xoxd- xapp-", setOf("0-9a-zA-Z%\x2d"), 14, 0, slackBody},
	{"slack-token", "xoxe.xoxp- xoxe.xoxb-", setOf("0-9a-zA-Z\x2d"), 24, 0, slackBody},
	{"sendgrid-key", "SG.", dotted, 40, 0, looksRandom},
	{"mailgun-key", "key- pubkey-", hexits, 32, 32, notDull},
	{"brevo-key", "xkeysib- xsmtpsib-", setOf("0-9a-zA-Z\x2d"), 60, 0, notDull},
	{"resend-key", "re_", word, 30, 36, looksRandom},
	{"loops-customerio-key", "sk_cio_ app_cio_", alnum, 24, 0, notDull},
	{"twilio-key", "SK", anyHex, 32, 32, notDull},
	{"twilio-account", "AC", hexits, 32, 32, notDull},
	{"nylas-key", "nyk_v0_", alnum, 40, 0, notDull},
	{"hubspot-token", "pat-na1- pat-na2- pat-eu1- pat-na3-", setOf("0-9a-fA-F\x2d"), 36, 36, dashGroups},
	{"intercom-token", "dG9rOm dG9rO", base64s, 40, 0, looksRandom},

	// money
	{"stripe-key", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_", alnum, 10, 0, notDull},
	{"stripe-webhook-secret", "whsec_", base64s, 20, 0, looksRandom},
	{"square-token", "sq0atp- sq0csp- sq0idp- EAAAE EAAAl", urlSafe, 20, 0, looksRandom},
	{"paypal-token", "access_token$production$ access_token$sandbox$", setOf("0-9a-z$"), 30, 0, notDull},
	{"plaid-token", "access-sandbox- access-production- access-development-", setOf("0-9a-f\x2d"), 36, 36, dashGroups},
	{"shopify-token", "shpat_ shpca_ shppa_ shpss_ shpua_ shptka_", anyHex, 32, 0, notDull},
	{"flutterwave-key", "FLWSECK_TEST- FLWSECK- FLWPUBK_TEST- FLWPUBK-", alnum, 12, 0, notDull},
	{"easypost-key", "EZAK EZTK", alnum, 54, 54, notDull},
	{"lob-key", "live_ test_", hexits, 35, 35, notDull},
	{"lob-key", "live_pub_ test_pub_", hexits, 31, 31, notDull},
	{"gocardless-token", "live_ sandbox_", setOf("0-9a-zA-Z_=\x2d"), 40, 40, looksRandom},
	{"duffel-token", "duffel_live_ duffel_test_", setOf("0-9a-zA-Z_=\x2d"), 40, 0, notDull},
	{"shippo-token", "shippo_live_ shippo_test_", hexits, 40, 40, notDull},
	{"razorpay-key", "rzp_live_ rzp_test_", alnum, 14, 24, looksRandom},
	{"checkout-key", "sk_sbox_ sk_sbx_", setOf("0-9a-z_\x2d"), 20, 0, looksRandom},
	{"adyen-key", "AQE", base64s, 90, 0, notDull},
	{"paystack-mollie-key", "live_ test_", alnum, 30, 34, looksRandom},
	{"coinbase-key", "organizations/", setOf("0-9a-f/apiKeys\x2d"), 80, 90, notDull},
	{"polar-token", "polar_oat_ polar_pat_ polar_at_", alnum, 30, 0, notDull},
	{"persona-key", "persona_production_ persona_sandbox_", urlSafe, 30, 0, notDull},
	{"lemonsqueezy-gumroad-key", "lsq_ grd_", alnum, 30, 0, looksRandom},

	// monitoring and analytics
	{"sentry-token", "sntrys_eyJ sntryu_ sntrya_", base64s, 40, 0, notDull},
	{"grafana-token", "glc_ glsa_", setOf("0-9a-zA-Z_+/="), 32, 0, notDull},
	{"grafana-key", "eyJrIjoi", base64s, 40, 0, notDull},
	{"newrelic-key", "NRAK- NRJS- NRII- NRRA- NRIQ- NRAL- NRAA- NRSP-", urlSafe, 19, 0, looksRandom},
	{"dynatrace-token", "dt0c01. dt0s01. dt0s02. dt0s16.", dotted, 60, 0, notDull},
	{"honeycomb-key", "hcaik_ hcxik_ hcamk_ hcxmk_ hcbik_ hcalk_", alnum, 26, 0, notDull},
	{"pagerduty-token", "pdus+ u+", setOf("0-9a-zA-Z_+\x2d"), 18, 20, looksRandom},
	{"rollbar-betterstack-token", "bs_ ubs_", alnum, 24, 0, looksRandom},
	{"segment-token", "sgp_", alnum, 64, 64, notDull},
	{"axiom-token", "xaat- xapt-", setOf("0-9a-f\x2d"), 36, 36, dashGroups},
	{"raygun-bugsnag-token", "rgn_", alnum, 24, 0, looksRandom},
	{"mapbox-token", "sk.eyJ tk.eyJ", dotted, 40, 0, notDull},
	{"mapbox-token", "pk.eyJ pk.", dotted, 60, 0, looksRandom},
	{"algolia-meilisearch-key", "ALGOLIA_", alnum, 32, 32, looksRandom},

	// products with a public prefix
	{"notion-token", "secret_ ntn_", alnum, 40, 0, looksRandom},
	{"airtable-token", "pat", dotted, 79, 79, airtableBody},
	{"figma-token", "figd_ figu_ figo_ figor_ figuh_", urlSafe, 30, 0, notDull},
	{"dropbox-token", "sl.", urlSafe, 60, 0, notDull},
	{"contentful-token", "CFPAT-", urlSafe, 40, 0, notDull},
	{"typeform-token", "tfp_", dotted, 40, 0, notDull},
	{"facebook-token", "EAACEdEose0cBA EAA", alnum, 60, 0, notDull},
	{"instagram-token", "IGQV IGAA IGQW", urlSafe, 40, 0, notDull},
	{"twitter-bearer", "AAAAAAAAAAAAAAAAAAAA", setOf("0-9a-zA-Z%"), 60, 0, notDull},
	{"apify-token", "apify_api_ apify_proxy_", alnum, 30, 0, notDull},
	{"alchemy-key", "alcht_", alnum, 30, 30, notDull},
	{"adafruit-key", "aio_", alnum, 26, 32, looksRandom},
	{"intra42-secret", "s-s4t2ud- s-s4t2af- u-s4t2ud-", hexits, 64, 64, notDull},
	{"frameio-token", "fio-u-", setOf("0-9a-zA-Z_=\x2d"), 64, 64, notDull},
	{"scalingo-token", "tk-us-", urlSafe, 48, 48, notDull},
	{"settlemint-token", "sm_pat_ sm_aat_ sm_sat_", alnum, 16, 16, notDull},
	{"portainer-token", "ptr_", setOf("0-9a-zA-Z+/="), 40, 0, notDull},
	{"wakatime-key", "waka_ waka_tok_", setOf("0-9a-f\x2d"), 36, 36, dashGroups},
	{"salesforce-consumer-key", "3MVG", dotted, 60, 0, looksRandom},
	{"salesforce-session", "00D", setOf("0-9a-zA-Z!._"), 80, 0, salesforceBody},
	{"openshift-token", "sha256~", urlSafe, 40, 43, notDull},
	{"okta-token", "00", urlSafe, 40, 40, oktaBody},
	{"samsara-key", "samsara_api_", alnum, 28, 32, notDull},
	{"retool-token", "retool_01 retool_", alnum, 24, 40, looksRandom},
	{"canva-zuplo-key", "cnvca zpka_", word, 30, 0, looksRandom},
	{"sanity-token", "sk", alnum, 80, 180, looksRandom},
	{"endor-key", "endr+", urlSafe, 16, 0, notDull},
	{"nasa-rapid-key", "napikey_ rapi_", alnum, 30, 0, looksRandom},
	{"svix-key", "testsk_ sk_svix_", dotted, 24, 0, looksRandom},
	{"workos-clerk-key", "sk_ ak_ sk_a_", word, 40, 70, looksRandom},
	{"microsoft-graph-refresh", "0.AXo 0.AUw M.C5", dotted, 60, 0, looksRandom},
	{"azure-pat", "AZDO", alnum, 76, 84, looksRandom},
	{"firebase-messaging-token", "APA91b", urlSafe, 100, 0, notDull},
	{"docker-swarm-token", "SWMTKN-1- SWMKEY-1-", setOf("0-9a-zA-Z+/\x2d"), 40, 0, notDull},
	{"woocommerce-key", "ck_ cs_", hexits, 40, 40, notDull},
	{"teamcity-token", "eyJ0eXAiOiAiVENWMiJ9.", dotted, 30, 0, notDull},
	{"particle-branch-token", "key_live_ secret_live_ key_test_", alnum, 24, 0, looksRandom},
	{"stackhawk-key", "hawk.", dotted, 40, 0, looksRandom},
	{"dependency-track-key", "odt_", alnum, 32, 0, notDull},
	{"adobe-secret", "p8e- p8-", setOf("0-9a-zA-Z\x2d"), 32, 0, looksRandom},
	{"sumologic-id", "su", alnum, 12, 12, sumoBody},
	{"blynk-thingspeak-token", "blynk_", alnum, 30, 0, looksRandom},

	// keys of chains and messaging systems
	{"nats-seed", "SU SA SO SC SN SX", base32, 54, 56, looksRandom},
	{"nostr-key", "nsec1", bech32, 58, 58, notDull},
	{"extended-private-key", "xprv yprv zprv tprv", base58, 100, 112, notDull},
}

// formatTriggers compiles the table: one trigger per prefix.
func formatTriggers() []trigger {
	var out []trigger
	for _, f := range formats {
		for prefix := range strings.FieldsSeq(f.prefixes) {
			out = append(out, trigger{word: prefix, exact: true, rule: f.match})
		}
	}
	return out
}

// match checks the text after a prefix.
func (f format) match(c *cursor) (Match, bool) {
	if !boundary(c.text, c.start) || c.end-c.start < 3 && c.start > 0 && strings.IndexByte("-+/", c.text[c.start-1]) >= 0 {
		return Match{}, false
	}
	limit := maxValue
	if f.max > 0 {
		limit = f.max + 1
	}
	n := f.body.runLen(c.text, c.end, limit)
	if n < f.min || f.max > 0 && n > f.max {
		return Match{}, false
	}
	body := c.text[c.end : c.end+n]
	if f.check != nil && !f.check(body) || stuffed(body) || elided(c.text, c.end+n) {
		return Match{}, false
	}
	return Match{Rule: f.name, Class: Token, Start: c.start, End: c.end + n}, true
}

// stuffed reports whether a token's body was filled in by hand to show its shape.
func stuffed(body string) bool {
	low := strings.ToLower(body)
	for _, mark := range [...]string{"xxxxx", "redacted", "placeholder", ".....", "abcdefghijkl"} {
		if strings.Contains(low, mark) {
			return true
		}
	}
	return strings.Contains(body, "EXAMPLE") || strings.Contains(low, "your") && strings.Contains(low, "here")
}

// notDull accepts anything but a few characters repeated.
func notDull(body string) bool {
	p := measure(body)
	return p.distinct >= 5 && p.longest*2 <= p.n || p.distinct >= 10
}

// slackBody wants the numbers every Slack token begins with, or a body too random to be words.
func slackBody(body string) bool {
	p := measure(body)
	return p.distinct >= 6 && p.digit >= 3 && p.longest < 14 || p.random()
}

// dashGroups wants groups joined by dashes, as in a UUID.
func dashGroups(body string) bool {
	return strings.Count(body, "-") >= 4 && notDull(body)
}

// sumoBody wants digits and both cases, since the prefix is only two letters.
func sumoBody(body string) bool {
	p := measure(body)
	return p.kinds() == 3 && p.digit >= 2 && 100*p.breaks >= 40*(p.n-1)
}

// oktaBody wants more than hexadecimal, which begins with zeros for many reasons.
func oktaBody(body string) bool { return !anyHex.all(body) && looksRandom(body) }

func airtableBody(body string) bool {
	return len(body) == 79 && body[14] == '.' && alnum.all(body[:14]) && hexits.all(body[15:])
}

func salesforceBody(body string) bool {
	i := strings.IndexByte(body, '!')
	return i >= 9 && i <= 16 && notDull(body)
}
