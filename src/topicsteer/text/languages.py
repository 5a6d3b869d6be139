"""Words that carry grammar and no subject, by language, and which of these languages a corpus is in."""

from collections.abc import Mapping

_NAMES = {
    "english": "en",
    "german": "de",
    "french": "fr",
    "spanish": "es",
    "italian": "it",
    "portuguese": "pt",
    "dutch": "nl",
    "russian": "ru",
    "swedish": "sv",
    "polish": "pl",
}
# As they are spelt once apostrophes split a token: "don't" gives don and t, "qu'il" gives qu and il.
_WORDS = {
    "en": """
        a d i m s t
        about above across after again against all almost along already also although always am
        among an and another any anyone anything are aren around as at away be became because become
        been before behind being below between both but by can cannot could couldn did didn do does
        doesn doing don done down during each either else etc even ever every everyone everything
        few for from further get gets getting go goes going got had hadn has hasn have haven having
        he hence her here hers herself him himself his how however if in indeed instead into is isn
        it its itself just let ll many may maybe me might more moreover most much must mustn my
        myself needn neither never no nobody none nor not nothing now of off often on once one only
        onto or other others otherwise our ours ourselves out over own per perhaps quite rather re
        really same shall she should shouldn since so some someone something sometimes somewhere
        still such than that the their theirs them themselves then there therefore these they this
        those though through thus to together too toward towards under unless until up upon us ve
        very via was wasn we were weren what whatever when whenever where whereas whether which
        while who whom whose why will with within without would wouldn yes yet you your yours
        yourself yourselves""",
    "de": """
        ab aber alle allem allen aller alles als also am an andere anderem anderen anderer anderes
        anders auch auf aus bei beide beiden beim bereits bevor bin bis bist bzw da dabei dadurch
        dafür dagegen daher dahin damals damit danach daneben dann daran darauf daraus darf darin
        darum darunter darüber das dass dasselbe davon davor dazu daß dein deine deinem deinen
        deiner deines dem den denen denn dennoch denselben der deren derer derselbe derselben des
        deshalb desselben dessen desto dich die dies diese dieselbe dieselben diesem diesen dieser
        dieses dir doch dort dran du durch dürfen ebenso eher ein eine einem einen einer eines
        einige einigen einiger einmal er erst es etwa etwas euch euer eure eurem euren eurer eures
        falls fast für gar gegen gegenüber gewesen gibt hab habe haben hat hatte hatten hier hin
        hinter hätte hätten ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im immer in indem
        innerhalb ins ist ja je jede jedem jeden jeder jedes jedoch jemand jene jenem jenen jener
        jenes jetzt kann kannst kaum kein keine keinem keinen keiner keines könne können könnte
        könnten lassen mal man manche manchem manchen mancher manchmal mehr mein meine meinem meinen
        meiner meines mich mir mit muss musste müssen müsste nach nachdem neben nein nicht nichts
        nie niemand noch nun nur ob obwohl oder oft ohne schon sehr sei seid sein seine seinem
        seinen seiner seines seit selbst sich sie sind so sobald sodass sofern sogar solche solchem
        solchen solcher soll sollen sollte sollten somit sondern sonst soweit sowie sowohl statt
        trotz um und uns unser unsere unserem unseren unserer unseres unter usw viel viele vielen
        vieler vielleicht vom von vor vorher wann war waren warst warum was weder wegen weil weiter
        weitere weiteren weiterer weiteres welche welchem welchen welcher welches wem wen wenig
        wenige weniger wenn wer werde werden wessen wie wieder will wir wird wirst wo wobei wodurch
        wofür wohl wollen wollte worden wurde wurden während würde würden zu zudem zum zur zwar
        zwischen über""",
    "fr": """
        c d j l m n s t y à
        afin ai aie aient ailleurs ainsi ait alors après as assez au aucun aucune aujourd auquel
        aura auraient aurait aurons auront aussi autour autre autres aux auxquelles auxquels avaient
        avais avait avant avec avez avoir avons ayant beaucoup bien car ce ceci cela celle celles
        celui cependant certain certaine certaines certains ces cet cette ceux chacun chacune chaque
        chez ci comme comment contre dans de dedans dehors depuis derrière des desquelles desquels
        devant doit doivent donc dont du duquel durant dès déjà elle elles en encore enfin entre es
        est et eu eux faire fait faut fois font furent fut fût hors hui ici il ils je jusqu jusque
        la laquelle le lequel les lesquelles lesquels leur leurs lors lorsqu lorsque lui là ma mais
        malgré me mes mien mienne moi moins mon même mêmes ne ni non nos notamment notre nous nôtre
        on ont or ou oui où par parce parfois parmi pas pendant peu peut peuvent peux plus plusieurs
        plutôt pour pourquoi pourrait pourtant près puis puisqu puisque qu quand que quel quelle
        quelles quelqu quelque quelques quels qui quoi quoique sa sans sauf se selon sera seraient
        serait serons seront ses seulement si sien sienne sinon soi soient sois soit sommes son sont
        sous souvent soyez soyons suis suivant sur ta tandis tant te tel telle telles tels tes toi
        ton toujours tous tout toute toutefois toutes trop très tu un une va vers voici voilà vos
        votre vous vraiment vôtre étaient étais était étant étions été êtes être""",
    "es": """
        a e o u y
        acá además ahora ahí al algo alguien alguna algunas alguno algunos algún allá allí ambas
        ambos ante antes apenas aquel aquella aquellas aquello aquellos aquí así aunque aún bajo
        bastante bien cada casi como con conmigo contigo contra cual cuales cualquier cualquiera
        cuando cuanto cuya cuyas cuyo cuyos cuál cuándo cuánto cómo de debe deben debido del demás
        dentro desde después detrás dicho donde durante dónde el ella ellas ello ellos en encima
        entonces entre era eran eras eres es esa esas ese eso esos esta estaba estaban estado
        estamos estar estará estas este esto estos estoy estuvieron estuvo está están esté estén etc
        fue fuera fueron fuese fui fuimos ha haber habido habrá habría había habían haciendo han has
        hasta hay haya he hemos hubiera hubo incluso ir jamás junto la las le les lo los luego me
        mediante mejor menos mi mientras mis misma mismas mismo mismos mucha muchas mucho muchos muy
        más mí mía mías mío míos nada nadie ni ninguna ninguno ningún no nos nosotras nosotros
        nuestra nuestras nuestro nuestros nunca os otra otras otro otros para pero poca pocas poco
        pocos podemos poder podrá podría podía por porque puede pueden puedo pues que quien quienes
        quizá quizás quién qué se sea sean según ser será serán sería si sido siempre siendo sin
        sino sobre solo somos son soy su sus suya suyas suyo suyos sí sólo tal tales también tampoco
        tan tanta tantas tanto tantos te tendrá tenemos tener tengo tenido tenía ti tiene tienen
        toda todas todavía todo todos tras tu tus tuvo tuya tuyas tuyo tuyos tú un una unas uno unos
        usted ustedes va vamos van varias varios vosotras vosotros vuestra vuestras vuestro vuestros
        ya yo él""",
    "it": """
        a c e i l o è
        abbia abbiamo abbiano ad adesso agl agli ai al alcun alcuna alcune alcuni alcuno all alla
        alle allo allora altra altre altri altro anche ancora anzi appena avendo aver avere avete
        aveva avevano avrebbe avrebbero avuto ben bene che chi chiunque ci ciascun ciascuna ciascuno
        cioè circa ciò coi col come con contro così cui da dagli dai dal dall dalla dalle dallo
        davanti degli dei del dell della delle dello dentro deve devono di dietro dopo dov dove
        dovrebbe dunque durante ebbe ecco ed egli ella entrambi era erano eri ero esse essendo
        essere essi esso fa facendo fanno fare fatto fece fecero fino fosse fossero fra fu fui
        furono già gli ha hai hanno ho il in infatti infine insieme intanto invece io la le lei li
        lo loro lui lungo là lì ma mai me meglio meno mentre mi mia mie miei mio molta molte molti
        molto ne neanche negli nei nel nell nella nelle nello nemmeno neppure nessun nessuna nessuno
        niente noi non nostra nostre nostri nostro nulla né od oggi ogni ognuno oltre oppure ora per
        perché perciò però più po poca poche pochi poco poi possono presso prima proprio pur pure
        può qual qualche qualcosa qualcuno quale quali quando quanta quante quanti quanto quasi quel
        quell quella quelle quelli quello questa queste questi questo qui quindi saranno sarebbe
        sarebbero sarà se secondo sei sembra sempre senza si sia siamo siano siete sono sopra
        soprattutto sotto sta stanno stata state stati stato stava stessa stesse stessi stesso sto
        su sua subito sue sugli sui sul sull sulla sulle sullo suo suoi sé sì tale tali tanta tante
        tanti tanto te ti tra tramite troppo tu tua tue tuo tuoi tutta tuttavia tutte tutti tutto un
        una uno va vengono verso vi via viene voi vostra vostre vostri vostro""",
    "pt": """
        a e o à é
        acima agora ainda algo algum alguma algumas alguns alguém ali além ambas ambos ante antes ao
        aos apenas apesar após aquela aquelas aquele aqueles aqui aquilo as assim através atrás até
        aí bem cada com como contra contudo cuja cujas cujo cujos cá da daquela daquele das de dela
        delas dele deles demais dentro depois desde dessa dessas desse desses desta destas deste
        destes deve devem do dos durante ela elas ele eles em embora enquanto entre então era eram
        essa essas esse esses esta estamos estar estas estava estavam este esteja estejam estes
        esteve estive estou está estão eu foi fomos for fora foram forem fosse fossem fui haver
        havia hei houve houver há hão isso isto jamais já la lhe lhes lo logo lá mais mas me
        mediante mesma mesmas mesmo mesmos meu meus mim minha minhas muita muitas muito muitos na
        nada naquela naquele nas nela nele nem nenhum nenhuma nessa nesse nesta neste no nos nossa
        nossas nosso nossos num numa nunca não nós onde ora os ou outra outras outro outros para
        pela pelas pelo pelos perante pode podem poderá pois por porque portanto porém pouca poucas
        pouco poucos própria próprio quais qual qualquer quando quanto quase que quem quer quê se
        seja sejam sem sempre sendo ser seria seriam será serão seu seus si sido sob sobre somente
        somos sou sua suas são só tais tal também tampouco tanto te tem temos tendo tenha tenham
        tenho ter teria terá teu teus teve ti tinha tinham tive tiver tiveram tivesse toda todas
        todavia todo todos tu tua tuas tudo tão têm um uma umas uns vai você vocês vos vosso vários
        vão vós às éramos""",
    "nl": """
        t u
        aan aangezien achter af al aldus alle alleen allemaal alles als alsof altijd ander andere
        anderen anders ben bent bij bijna binnen boven buiten daar daarbij daardoor daarin daarmee
        daarna daarom daarop daarvan daarvoor dan dat de der deze die dit doch doen door dus echter
        een eens eerst elk elke en enige enkel enkele er erg ergens ermee erop eruit ervan ervoor
        etc even ge geen geweest gewoon haar had hadden hare heb hebben hebt heeft heel hem hen het
        hetgeen hier hierbij hierdoor hiermee hierna hij hoe hoewel hun iedere iedereen iemand iets
        ik in inmiddels is ja je jezelf jij jou jouw juist jullie kan kon konden kunnen laat maar
        mag me meer men met mij mijn moest moet moeten mogen na naar naast nadat net niemand niet
        niets niks noch nodig nog nooit nu of ofwel om omdat omtrent ondanks onder ons onszelf onze
        ook op over per precies reeds rond samen sinds slechts sommige soms steeds te tegen
        tegenover ten tenzij ter terug terwijl tijdens toch toe toen tot totdat tussen uit uw vaak
        van vanaf vanuit vanwege veel verder via volgens voor vooral voordat waar waarbij waardoor
        waarin waarmee waarom waarop waarvan waarvoor want waren was wat we weer wel welke werd
        werden wie wij wil worden wordt zal ze zeer zei zelf zelfs zich zichzelf zij zijn zo zoals
        zodat zonder zou zouden zowel zulke zullen""",
    "ru": """
        а б в ж и к о с у я
        без более больше будем будет будете будешь будто буду будут будучи бы был была были было
        быть вам вами вас ваш ваша ваше ваши ведь весь во вот впрочем все всегда всего всем всеми
        всему всех всею всю вся всё вы где да даже для до другие других другого другой его ее ей ему
        если есть еще ещё ею её же за зачем здесь из или им именно ими иногда их каждая каждого
        каждое каждый как какая какие какой ко когда кого кому конечно которая которого которое
        которой котором которому которую которые который которых кроме кто куда ли либо лишь лучше
        между меня мне много мной может можно мои мой моя моё мы на над надо наконец нам нами нас
        наш наша наше наши не него нее ней некоторые нельзя нем нему несколько нет нею неё ни нибудь
        никогда ним ними них ничего но ну нужно нём об обо один одна однако одни одно он она они оно
        опять от ото очень перед по под после потом потому почему почти при про просто раз разве сам
        сама сами само самый свое своего своей своем своему свои своих свой свою своя своё себе себя
        сейчас со собой совсем так такая также такие таким таких такого такое такой там тебе тебя
        тем теми теперь тех то тобой тогда того тоже той только том тому тот тою ту тут ты уж уже
        хоть хотя чего чей чем чему через что чтоб чтобы чуть чья эта эти этим этих это этого этой
        этом этому этот эту""",
    "sv": """
        i å
        alla allt alltid allting andra att av bara behöver bland blev bli blir blivit både de dem
        den denna deras dess dessa det detta dig din dina ditt dock du där därför då efter eftersom
        ej eller en ens er era ert ett fast finns flera från få får för före först genom gör göra ha
        hade han hans har hela hellre henne hennes hon honom hos hur här ibland icke in inför inga
        ingen inget innan inne inom inte ja jag ju just kan kanske kom kommer kunde kunna lite man
        med medan mellan men mer mera mest mig min mina mindre mitt mot mycket många måste ned nej
        ner ni nog nu när någon något några och också om oss på redan samma samt sedan sig sin sina
        sitt själv ska skall skulle som så sådan sådana sådant till trots under upp ur ut utan vad
        var vara varför varit varje varken vars vart vem vi vid vilka vilken vilket vill visst vår
        våra vårt än ännu är även åt över""",
    "pl": """
        a i o u w z
        aby albo ale ani aż bardziej bardzo bez bo bowiem by być był była było były będzie będą ci
        cię co coś czy czyli często dla dlaczego dlatego do dziś gdy gdyby gdyż gdzie go ich ile im
        inna inne innego innej inny innych iż ja jak jaka jaki jakie jako je jeden jedna jednak
        jedno jego jej jemu jest jestem jesteśmy jeszcze jeśli jeżeli już każda każde każdy kiedy
        kilka kto która które którego której który których którym którzy lecz lub ma mają mam mi
        mimo między mnie mną mogą moich moim moja moje może można my mój na nad nam nami nas nasi
        nasz nasza nasze natomiast nawet nic nich nie niego niej nigdy nim nimi niż no np obok od
        ona one oni ono oraz po pod ponad ponieważ poza przed przede przez przy raz razem również
        sam siebie się skąd sobie sobą swoich swoje swojej swoją swój są ta tak taka taki takie
        także tam te tego tej temu ten też to tobie tu tutaj twoich twoja twoje twój ty tych tylko
        tym tą tę wam wami was wasz we według wiele więc wszystkich wszystkie wszystko właśnie wśród
        za zawsze zaś ze żaden żadna że żeby""",
}


def stop_words(*languages: str) -> frozenset[str]:
    """Words to leave out of topics, in the named languages.

    Parameters
    ----------
    *languages : str
        English, German, French, Spanish, Italian, Portuguese, Dutch, Russian, Swedish or Polish, by these names
        or by their codes en, de, fr, es, it, pt, nl, ru, sv, pl.

    Returns
    -------
    frozenset of str

    Examples
    --------
    >>> from topicsteer.text import stop_words
    >>> sorted(stop_words("english", "de") & {"the", "und", "topic"})
    ['the', 'und']
    """
    codes = [_NAMES.get(language.lower(), language.lower()) for language in languages]
    for code, language in zip(codes, languages, strict=True):
        if code not in _WORDS:
            raise ValueError(
                f"no stop words for language {language!r}: expected one of {', '.join(_WORDS)}"
                f" or {', '.join(_NAMES)}. For others give the words themselves, as a set."
            )
    return frozenset(word for code in codes for word in _WORDS[code].split())


def detect_languages(counts: Mapping[str, int], *, share: float = 0.02) -> list[str]:
    """Languages whose stop words, three at least, make up a share of all words, the most frequent first.

    A word counts for the first language that has it: the English *in* and *so* do not make a text German.

    Parameters
    ----------
    counts : mapping of str to int
        How often each word occurs in the corpus.
    share : float
        The least share of all occurrences.

    Returns
    -------
    list of str
        Codes of languages, empty if none was recognised.

    Examples
    --------
    >>> from topicsteer.text.languages import detect_languages
    >>> detect_languages({"the": 60, "of": 30, "in": 20, "so": 5, "topic": 100})
    ['en']
    """
    least = share * sum(counts.values())
    remaining = {code: set(words.split()) for code, words in _WORDS.items()}
    found: list[str] = []
    while remaining:
        totals = {code: sum(counts.get(word, 0) for word in words) for code, words in remaining.items()}
        best = max(totals, key=totals.__getitem__)
        if totals[best] < least or sum(word in counts for word in remaining[best]) < 3:
            break
        found.append(best)
        taken = remaining.pop(best)
        remaining = {code: words - taken for code, words in remaining.items()}
    return found
